package projectcmd

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/project"
)

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func folder(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// One repository is one place for all its worktrees, each submodule is one, and no file in a repository makes it
// another's.
func TestPlace(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	all := func(string) bool { return true }
	home := filepath.Join(dir, "home")
	f := &Finder{own: all, home: home}
	repo := filepath.Join(dir, "repo")
	common := filepath.Join(repo, ".git")
	write(t, filepath.Join(common, "HEAD"), "ref: refs/heads/main\n")
	write(t, filepath.Join(repo, "a", "b", "x"), "")
	// a worktree
	tree := filepath.Join(dir, "tree")
	write(t, filepath.Join(tree, ".git"), "gitdir: "+filepath.Join(common, "worktrees", "tree")+"\n")
	write(t, filepath.Join(common, "worktrees", "tree", "gitdir"), filepath.Join(tree, ".git")+"\n")
	write(t, filepath.Join(common, "worktrees", "tree", "commondir"), "../..\n")
	// a submodule
	sub := filepath.Join(repo, "sub")
	write(t, filepath.Join(sub, ".git"), "gitdir: ../.git/modules/sub\n")
	write(t, filepath.Join(common, "modules", "sub", "HEAD"), "x")
	write(t, filepath.Join(common, "modules", "sub", "config"), "[core]\n\tworktree = ../../../sub\n")
	// hostile ones: each names the repository of another folder
	evil := func(name, gitFile string, more ...string) string {
		at := filepath.Join(dir, name)
		write(t, filepath.Join(at, ".git"), gitFile)
		for i := 0; i+1 < len(more); i += 2 {
			write(t, filepath.Join(at, more[i]), more[i+1])
		}
		return at
	}
	plain := evil("evil-plain", "gitdir: "+common)
	stolen := evil("evil-tree", "gitdir: "+filepath.Join(common, "worktrees", "tree"))
	own := evil("evil-own", "gitdir: own/worktrees/x", "own/worktrees/x/gitdir", filepath.Join(dir, "evil-own", ".git"),
		"own/worktrees/x/commondir", common)
	module := evil("evil-module", "gitdir: "+filepath.Join(common, "modules", "sub"))
	link := filepath.Join(dir, "evil-link")
	if err := errors.Join(os.Mkdir(link, 0o700), os.Symlink(common, filepath.Join(link, ".git"))); err != nil {
		t.Fatal(err)
	}
	bad := evil("bad", "no git file at all\n")
	empty := filepath.Join(dir, "empty")
	if err := errors.Join(os.MkdirAll(filepath.Join(empty, ".git"), 0o700), os.Mkdir(home, 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		dir  string
		root bool
		want string
	}{
		{repo, false, common}, {filepath.Join(repo, "a", "b"), false, common}, {tree, false, common},
		{sub, false, filepath.Join(common, "modules", "sub")}, {plain, false, plain}, {stolen, false, stolen}, {own,
			false, own},
		{module, false, module}, {link, false, link}, {bad, false, ""}, {empty, false, ""}, {empty, true, empty},
		{home, true, ""}, {string(filepath.Separator), true, ""}, {filepath.Join(dir, "gone"), true,
			filepath.Join(dir, "gone")},
	} {
		if got, err := f.Place(c.dir, c.root); got != c.want || err != nil {
			t.Errorf("%s: %s %v, want %s", c.dir, got, err, c.want)
		}
	}
	// A repository of another user above is passed over.
	foreign := &Finder{own: func(path string) bool { return path != common }, home: home}
	if got, err := foreign.Place(filepath.Join(repo, "a"), false); got != "" || err != nil {
		t.Errorf("%s %v", got, err)
	}
	// A symbolic link to a folder is that folder.
	alias := filepath.Join(dir, "alias")
	if err := os.Symlink(repo, alias); err != nil {
		t.Fatal(err)
	}
	if got, _ := f.Place(alias, false); got != common {
		t.Error(got)
	}
}

// And as git itself makes them.
func TestPlaceOfGit(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not there: apt-get install git")
	}
	dir := folder(t)
	git := func(at string, args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "protocol.file.allow=always", "-c", "user.name=a", "-c",
			"user.email=a@b"}, args...)...)
		cmd.Dir = at
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "HOME="+dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git(dir, "init", "-q", "lib")
	git(filepath.Join(dir, "lib"), "commit", "-q", "--allow-empty", "-m", "x")
	git(dir, "init", "-q", "app")
	app := filepath.Join(dir, "app")
	git(app, "commit", "-q", "--allow-empty", "-m", "x")
	git(app, "worktree", "add", "-q", "../tree")
	git(app, "submodule", "--quiet", "add", filepath.Join(dir, "lib"), "lib")
	git(dir, "clone", "-q", "app", "copy")
	f := &Finder{own: func(string) bool { return true }}
	places := map[string]string{}
	for _, name := range []string{"app", "tree", "app/lib", "lib", "copy"} {
		place, err := f.Place(filepath.Join(dir, filepath.FromSlash(name)), false)
		if err != nil {
			t.Fatal(err)
		}
		places[name] = place
	}
	if places["app"] != filepath.Join(app, ".git") || places["tree"] != places["app"] ||
		places["app/lib"] != filepath.Join(app, ".git", "modules",
			"lib") || places["copy"] == places["app"] || places["lib"] == places["app/lib"] {
		t.Errorf("%v", places)
	}
}

// Two processes that meet a place first give it one id; a name is for the folders that were confirmed.
func TestRegistry(t *testing.T) {
	t.Parallel()
	r := NewRegistry(t.TempDir())
	ids := make(chan string, 20)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			rec, err := NewRegistry(filepath.Dir(r.dir)).OfPlace("/work/app/.git")
			if err != nil {
				t.Error(err)
			}
			ids <- rec.Project
		})
	}
	all.Wait()
	close(ids)
	first := <-ids
	for id := range ids {
		if id != first || !project.IsID(id) {
			t.Fatalf("%s and %s", id, first)
		}
	}
	if rec, err := r.OfPlace("/work/app.git"); err != nil || rec.Project == first || rec.Name != "app" {
		t.Errorf("%+v %v", rec, err)
	}
	api, err := r.OfName("api", "/work/api/.git")
	if err != nil || api.Project == first {
		t.Errorf("%+v %v", api, err)
	}
	var other *NotJoinedError
	if rec, err := r.OfName("api", "/evil/.git"); !errors.As(err,
		&other) || other.First != "/work/api/.git" || rec.Project != "" {
		t.Errorf("%+v %v", rec, err)
	}
	if _, err := r.Join("api", "/work/docs/.git"); err != nil {
		t.Error(err)
	}
	if rec, err := r.OfName("api", "/work/docs/.git"); err != nil || rec.Project != api.Project {
		t.Errorf("%+v %v", rec, err)
	}
	if _, err := r.Join("none such", "/x"); !errors.Is(err, varve.ErrNotFound) {
		t.Error(err)
	}
	for name, want := range map[string]string{"${workspaceFolder}": "${workspaceFolder} was not expanded",
		"$HOME": "$HOME was not expanded",
		"~":     "was not expanded", "%USERPROFILE%": "was not expanded", "{{name}}": "was not expanded",
		"../api": "not a path", "": "empty", " x": "empty",
		"a\nb": "control characters", strings.Repeat("n", 129): "longer than"} {
		if _, err := r.OfName(name, "/x"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
	found, err := r.Find("api")
	if err != nil || len(found) != 2 {
		t.Errorf("%v %v", found, err)
	}
	if _, err := r.Find("nothing"); !errors.Is(err, varve.ErrNotFound) {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(r.dir, file("place", "/torn")), []byte(`{"project":"../x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.OfPlace("/torn"); err == nil || !strings.Contains(err.Error(), "is not a record of a project") {
		t.Error(err)
	}
	if _, err := NewRegistry("").OfPlace("/x"); err == nil || !strings.Contains(err.Error(), "--project none") {
		t.Error(err)
	}
}

func TestUnexpanded(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{"/home/ada": "", "/a/b$c": "", "C:\\$Recycle.Bin": "",
		"${workspaceFolder}/x": "${workspaceFolder}",
		"$HOME/x":              "$HOME", "/x/$USER": "$USER", "~/x": "~", "a~b": "", "%APPDATA%\\x": "%APPDATA%",
		"100%": "", "{{cwd}}": "{{cwd}}", "": ""} {
		if got := Unexpanded(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}
