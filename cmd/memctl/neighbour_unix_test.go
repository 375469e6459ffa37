//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// neighbour is a user who is not this one.
const neighbour = 65533

// asUsers returns a folder that all users may enter, and a function that runs memctl as a process of a user in a
// folder.
func asUsers(t *testing.T) (dir string, memctl func(uid int, in, stdin string, env []string, args ...string) (int,
	string)) {
	t.Helper()
	dir, err := os.MkdirTemp("", "memctl-neighbour-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path, err := exec.LookPath("memctl")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "memctl")
	if out, err := exec.Command("cp", path, program).CombinedOutput(); err != nil { // see unprivileged
		t.Fatalf("%v: %s", err, out)
	}
	if err := errors.Join(os.Chmod(program, 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	return dir, func(uid int, in, stdin string, env []string, args ...string) (int, string) {
		t.Helper()
		cmd := exec.Command(program, args...)
		cmd.Dir, cmd.Stdin = in, strings.NewReader(stdin)
		cmd.Env = append([]string{"HOME=" + in, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir}, env...)
		id := uint32(uid)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: id, Gid: id, NoSetGroups: true}}
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), string(out)
	}
}

// TestNeighbour: a store that is found by walking upwards and belongs to another user is passed over
// and named, and is used if --store or VARVE_STORE names it. Root has its own stores and, under sudo,
// those of the user who called it. Each call is a process of that user.
func TestNeighbour(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Log("only root can make a store of another user; TestForeign in internal/locate has the rule")
		return
	}
	dir, run := asUsers(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	memctl := func(uid int, in string, env []string, args ...string) (int, string) {
		t.Helper()
		return run(uid, in, "", env, args...)
	}
	const you = 65534
	// folder makes one that belongs to a user, and store one of his that all may read.
	folder := func(uid int, name string) string {
		t.Helper()
		at := filepath.Join(dir, name)
		must(os.MkdirAll(at, 0o755))
		must(os.Chown(at, uid, uid))
		return at
	}
	store := func(uid int, at, text string) {
		t.Helper()
		for _, args := range [][]string{{"init", at}, {"put", text, "--id", "a", "--store", at}} {
			if code, out := memctl(uid, filepath.Dir(at), nil, args...); code != cli.CodeOK {
				t.Fatalf("%q: %d: %s", args, code, out)
			}
		}
		must(exec.Command("chmod", "-R", "a+rX", at).Run())
	}
	theirs := func(at string, uid int) string {
		return fmt.Sprintf("%s belongs to user %d (another user) and is not used unless --store (or VARVE_STORE) "+
			"names it", at, uid)
	}
	get := func(uid int, in string, env []string, want, note string, args ...string) {
		t.Helper()
		code, out := memctl(uid, in, env, append([]string{"get", "a", "--content"}, args...)...)
		switch {
		case want == "" && (code != cli.CodeNoStore || !strings.Contains(out, note) || !strings.Contains(out, "--store")):
			t.Errorf("%d in %s: exit code %d, want %d and %q: %s", uid, in, code, cli.CodeNoStore, note, out)
		case want != "" && (code != cli.CodeOK || !strings.Contains(out, want) || !strings.Contains(out, note) || note == "" && strings.Contains(out, "belongs")):
			t.Errorf("%d in %s %v: exit code %d, want %q and %q: %s", uid, in, env, code, want, note, out)
		}
	}

	yours := filepath.Join(folder(you, "home"), "storage")
	store(you, yours, "of your own")
	hers := filepath.Join(folder(neighbour, "home/shared"), "storage")
	store(neighbour, hers, "of a neighbour")
	in := folder(you, "home/shared/deep")
	get(you, in, nil, "of your own", theirs(hers, neighbour))
	get(neighbour, in, nil, "of a neighbour", "")
	get(you, in, nil, "of a neighbour", "", "--store", hers)
	get(you, in, []string{"VARVE_STORE=" + hers}, "of a neighbour", "")
	get(0, in, nil, "", theirs(hers, neighbour))
	get(0, in, []string{"SUDO_UID=65534"}, "of your own", theirs(hers, neighbour))
	get(you, hers, nil, "of your own", theirs(hers, neighbour)) // in the folder itself
	get(you, in, []string{"SUDO_UID=65533"}, "of your own", theirs(hers, neighbour))
	if code, out := memctl(you, in, nil, "status", "--json"); code != cli.CodeOK || strings.Count(out, "belongs to") != 1 {
		t.Errorf("status: %d: %s", code, out)
	}

	// Nothing above it.
	alone := filepath.Join(folder(neighbour, "alone"), "storage")
	store(neighbour, alone, "nothing else")
	get(you, filepath.Dir(alone), nil, "", theirs(alone, neighbour))

	// One that does not say what it is, as stores are made, is named by its folder.
	shut := filepath.Join(folder(neighbour, "shut"), "storage")
	store(neighbour, shut, "nothing for others")
	must(os.Chmod(shut, 0o700))
	get(you, filepath.Dir(shut), nil, "", theirs(shut, neighbour))

	// A link of a neighbour leads to your own store: the folder where it is was not yours to choose.
	link := filepath.Join(folder(neighbour, "linked"), "storage")
	must(os.Symlink(yours, link))
	must(os.Lchown(link, neighbour, neighbour))
	get(you, filepath.Dir(link), nil, "", theirs(link, neighbour))
	get(you, filepath.Dir(link), nil, "of your own", "", "--store", link)

	// A folder such as /tmp is nobody's: what makes it a store is.
	open := folder(you, "open")
	store(neighbour, filepath.Join(folder(neighbour, "made"), "storage"), "put there")
	must(exec.Command("cp", "-a", filepath.Join(dir, "made/storage")+"/.", open).Run())
	must(os.Chown(open, you, you))
	must(os.Chmod(open, 0o1777))
	get(you, open, nil, "", theirs(open, neighbour))
}

// TestProjectOfANeighbour: memctl mcp in a repository of another user has no project there, follows nothing of it to a
// project of its own user, and writes nothing into that user's ids. Each call is a process of a user.
func TestProjectOfANeighbour(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Log("only root can make a repository of another user; TestPlace in internal/projectcmd has the rule")
		return
	}
	dir, run := asUsers(t)
	const you = 65534
	folder := func(uid int, name string) string {
		t.Helper()
		at := filepath.Join(dir, name)
		err := errors.Join(os.MkdirAll(at, 0o755), os.Chown(at, uid, uid))
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	file := func(uid int, name, text string) {
		t.Helper()
		at := filepath.Join(folder(uid, filepath.Dir(name)), filepath.Base(name))
		if err := errors.Join(os.WriteFile(at, []byte(text), 0o644), os.Chown(at, uid, uid)); err != nil {
			t.Fatal(err)
		}
	}
	home := folder(you, "home")
	state := filepath.Join(home, "state")
	env := []string{"HOME=" + home, "XDG_STATE_HOME=" + state, "VARVE_STORE=" + filepath.Join(home, "memory")}
	call := func(uid int, in, tool, args string, mcp ...string) string {
		t.Helper()
		lines := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
			`"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}` + "\n" +
			`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" +
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args + `}}` + "\n"
		_, out := run(uid, in, lines, env, append([]string{"mcp"}, mcp...)...)
		return out
	}
	const secret = "the vault is behind the picture"
	file(you, "home/own/.git/HEAD", "ref: refs/heads/main\n")
	own := filepath.Join(dir, "home/own")
	if out := call(you, own, "remember", `{"text":"`+secret+`"}`); !strings.Contains(out, "remembered") {
		t.Fatal(out)
	}
	if out := call(you, own, "recall", `{"query":"vault"}`); !strings.Contains(out, secret) {
		t.Fatal(out)
	}
	places := func() int {
		t.Helper()
		names, err := os.ReadDir(filepath.Join(state, "varve/projects"))
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	before := places()

	// A repository of hers; one whose .git is a file that leads to yours, as in a worktree; one whose .git is a link to
	// yours; and one that has a worktree's files of her own, which name yours as the common directory.
	file(neighbour, "hers/.git/HEAD", "ref: refs/heads/main\n")
	file(neighbour, "leads/.git", "gitdir: "+own+"/.git\n")
	link := filepath.Join(folder(neighbour, "linked"), ".git")
	if err := errors.Join(os.Symlink(own+"/.git", link), os.Lchown(link, neighbour, neighbour)); err != nil {
		t.Fatal(err)
	}
	file(neighbour, "forged/.git", "gitdir: "+dir+"/forged/meta\n")
	file(neighbour, "forged/meta/gitdir", dir+"/forged/.git\n")
	file(neighbour, "forged/meta/commondir", own+"/.git\n")
	for _, name := range []string{"hers", "leads", "linked", "forged"} {
		in := filepath.Join(dir, name)
		if out := call(you, in, "recall", `{"query":"vault"}`); !strings.Contains(out, "nothing found") ||
			strings.Contains(out, secret) {
			t.Errorf("%s: %s", name, out)
		}
		// A name of yours that her configuration gives wants your confirmation.
		if out := call(you, in, "recall", `{"query":"vault"}`, "--project", "mine"); name == "hers" {
			before++ // it is made here
		} else if !strings.Contains(out, "a user must confirm that") {
			t.Errorf("%s: %s", name, out)
		}
	}
	// In your own folder of her repository you have no project either.
	if out := call(you, folder(you, "hers/sub"), "remember", `{"text":"of the shared part"}`); !strings.Contains(out,
		"remembered") {
		t.Error(out)
	}
	if n := places(); n != before {
		t.Errorf("%d records of projects, want %d", n, before)
	}
	// She can neither read the ids of your projects nor the store.
	if out := call(neighbour, filepath.Join(dir, "hers"), "recall", `{"query":"vault"}`); strings.Contains(out, secret) {
		t.Error(out)
	}
}

// TestDoctorOfANeighbour: a report on a store of another user says so, whether the store can be read or not, and has
// nothing of it.
func TestDoctorOfANeighbour(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Log("only root can make a store of another user; TestDoctor has the other states")
		return
	}
	dir, run := asUsers(t)
	const you = 65534
	at := filepath.Join(dir, "hers")
	home := filepath.Join(dir, "home")
	if err := errors.Join(os.Mkdir(at, 0o755), os.Chown(at, neighbour, neighbour), os.Mkdir(home, 0o755),
		os.Chown(home, you, you)); err != nil {
		t.Fatal(err)
	}
	store := filepath.Join(at, "canaryfolder")
	for _, args := range [][]string{{"init", store}, {"put", "CANARYTEXT", "--id", "canaryid", "--store", store}} {
		if code, out := run(neighbour, at, "", nil, args...); code != cli.CodeOK {
			t.Fatalf("%q: %d: %s", args, code, out)
		}
	}
	for _, mode := range []string{"a+rX", "go-rwx"} {
		if out, err := exec.Command("chmod", "-R", mode, store).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		code, out := run(you, home, "", nil, "doctor", "--store", store)
		if code != cli.CodeOK || !strings.Contains(out, "owner: another user") || !strings.Contains(out, "\nnext ") ||
			strings.Contains(out, "CANARY") || strings.Contains(out, "canary") {
			t.Errorf("%s: %d: %s", mode, code, out)
		}
	}
}
