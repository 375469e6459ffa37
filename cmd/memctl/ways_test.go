package main

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// way is a command that finds a store, in a folder that came from elsewhere.
type way struct {
	name string
	at   string   // where the store is put, in the folder
	in   string   // where the command runs, in the folder
	env  string   // NAME=value; $ is the folder
	args []string // $ likewise
	used bool     // also where a link, or another user, has put it: its path was given
	link bool     // a link is the user's own there
}

// ways are those of package locate: each in which a store is found, and those in which it is named.
var ways = []way{
	{name: "--store", at: "any", args: []string{"get", "a", "--content", "--store", "$/any"}, used: true},
	{name: "VARVE_STORE", at: "any", env: "VARVE_STORE=$/any", args: []string{"get", "a", "--content"}, used: true},
	{name: "storage/ below", at: "storage", args: []string{"get", "a", "--content"}},
	{name: "upward search", at: "storage", in: "sub/deep", args: []string{"get", "a", "--content"}},
	{name: "put", at: "storage", args: []string{"put", "x", "--id", "b"}},
	{name: "search", at: "storage", args: []string{"search", "secret"}},
	{name: "status", at: "storage", args: []string{"status"}},
	{name: "verify", at: "storage", args: []string{"verify"}},
	{name: "repair", at: "storage", args: []string{"repair", "--apply"}},
	{name: "import", at: "storage", args: []string{"import", "$/lines.jsonl"}},
	{name: "backup", at: "storage", args: []string{"backup", "$/copy"}},
	{name: "migrate", at: "storage", args: []string{"migrate", "--to", "$/copy"}},
	{name: "init", at: "storage", args: []string{"init"}},
	{name: "completion", at: "storage", args: []string{"__complete", "get", "a"}},
	{name: "migrate, named", at: "any", args: []string{"--store", "$/any", "migrate", "--to", "$/copy"}, used: true},
	{name: "restore --log", at: "any", args: []string{"restore", "$/backup", "$/copy", "--log", "$/any"}, used: true},
	{name: "mcp --store", at: "any", args: []string{"mcp", "--store", "$/any"}, used: true},
	{name: "ui", at: "storage", args: []string{"ui", "--no-open", "--addr", "127.0.0.1:0"}},
	{name: "serve", at: "storage", args: []string{"serve", "--addr", "127.0.0.1:0", "--tokens", "$/tokens.json"}},
	{name: "MEMORY_FILE_PATH", at: "memory.jsonl.varve", env: "MEMORY_FILE_PATH=$/memory.jsonl", args: []string{"mcp"}},
	{name: "MEMORY_FILE_PATH, relative", at: "memory.jsonl.varve", env: "MEMORY_FILE_PATH=memory.jsonl", args: []string{"mcp"}},
	{name: "data folder", at: "varve/memory", env: "XDG_DATA_HOME=$", args: []string{"mcp"}, link: true},
}

// TestWaysOfOthers is in ways_unix_test.go.

// run runs it in a folder. MEMORY_FILE_PATH that is relative counts from this process's own folder.
func (w *way) run(t *testing.T, dir string) (code int, out string) {
	t.Helper()
	in := filepath.Join(dir, w.in)
	if err := os.MkdirAll(in, 0o700); err != nil {
		t.Fatal(err)
	}
	fill := func(s string) string { return strings.ReplaceAll(s, "$", dir) }
	name, value, _ := strings.Cut(fill(w.env), "=")
	if value == "memory.jsonl" {
		t.Chdir(dir)
	}
	var args []string
	for _, a := range w.args {
		args = append(args, fill(a))
	}
	var stdout, stderr bytes.Buffer
	env := cli.Environment{
		Getenv: func(n string) string {
			if n == name {
				return value
			}
			return ""
		},
		Getwd: func() (string, error) { return in, nil },
		Clock: time.Now,
	}
	code = run(t.Context(), args, strings.NewReader(""), &stdout, &stderr, env)
	return code, stdout.String() + stderr.String()
}

// TestWays (FAILURES 171): a store to which a link leads out of a folder that came from elsewhere is used in
// no way in which it is found, and stays as it is; the same of one of another user, in TestWaysOfOthers.
func TestWays(t *testing.T) {
	mine := newCLI(t)
	mine.ok("put", "a secret", "--id", "a")
	mine.ok("backup", filepath.Join(mine.dir, "backup"))
	before := names(t, mine.store())
	for _, w := range ways {
		dir := project(t, mine)
		at := filepath.Join(dir, w.at)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.Symlink(mine.store(), at)); err != nil {
			t.Skip(err)
		}
		code, out := w.run(t, dir)
		used := w.used || w.link
		if used != (code == cli.CodeOK) && w.name != "completion" {
			t.Errorf("%s: exit code %d: %s", w.name, code, out)
		} else if told := strings.Contains(out, "is a link to "+mine.store()); !used && !told && w.name != "completion" {
			t.Errorf("%s: %s", w.name, out)
		}
		if !used && strings.Contains(out, "secret") {
			t.Errorf("%s: %s", w.name, out)
		}
	}
	if ids := mine.ids(); len(ids) != 1 {
		t.Error(ids)
	}
	if after := names(t, mine.store()); !slices.Equal(after, before) {
		t.Errorf("the store has %v, was %v", after, before)
	}
}

// project is a folder with what the ways need besides a store.
func project(t *testing.T, mine *inProcess) string {
	t.Helper()
	dir := t.TempDir()
	err := os.CopyFS(filepath.Join(dir, "backup"), os.DirFS(filepath.Join(mine.dir, "backup")))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "lines.jsonl"), []byte(`{"id":"c","content":"imported"}`+"\n"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// names are the documents of a store.
func names(t *testing.T, store string) []string {
	t.Helper()
	list, err := os.ReadDir(filepath.Join(store, "memories"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// TestMemoryFileLinks (FAILURES 171): the file of the replaced server, and each folder that leads to it, may
// be a link that came with a project. Nothing of a private file is copied, and no store is made.
func TestMemoryFileLinks(t *testing.T) {
	t.Parallel()
	private := t.TempDir()
	const line = `{"type":"entity","name":"secret","entityType":"x","observations":["private"]}` + "\n"
	if err := os.WriteFile(filepath.Join(private, "memory.jsonl"), []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, link, to, file string
		git, used            bool
	}{
		{name: "the file", link: "memory.jsonl", to: filepath.Join(private, "memory.jsonl"), file: "memory.jsonl"},
		{name: "the file, to come", link: "memory.jsonl", to: filepath.Join(private, "coming"), file: "memory.jsonl"},
		{name: "a folder of a project", link: "data", to: private, file: "data/memory.jsonl", git: true},
		{name: "a folder above", link: "data", to: filepath.Dir(private), file: "data/" + filepath.Base(private) + "/memory.jsonl", git: true},
		{name: "within the project", link: "data", to: "real", file: "data/memory.jsonl", git: true, used: true},
		{name: "a folder that is a link, in no project", link: "data", to: private, file: "data/memory.jsonl", used: true},
	} {
		dir := t.TempDir()
		real := filepath.Join(dir, "real")
		err := errors.Join(os.Mkdir(real, 0o700), os.WriteFile(filepath.Join(real, "memory.jsonl"), []byte(line), 0o600),
			os.Symlink(c.to, filepath.Join(dir, c.link)))
		if c.git {
			err = errors.Join(err, os.Mkdir(filepath.Join(dir, ".git"), 0o700))
		}
		if err != nil {
			t.Skip(err)
		}
		w := way{env: "MEMORY_FILE_PATH=$/" + c.file, args: []string{"mcp"}}
		code, out := w.run(t, dir)
		stores, _ := filepath.Glob(filepath.Join(dir, "*.varve"))
		outside, _ := filepath.Glob(filepath.Join(private, "*.varve"))
		switch {
		case c.used && (code != cli.CodeOK || !strings.Contains(out, "took over 1 entity")):
			t.Errorf("%s: exit code %d: %s", c.name, code, out)
		case !c.used && (code != cli.CodeRefused || !strings.Contains(out, "is a link to ") || !strings.Contains(out, "--store") || len(stores)+len(outside) > 0):
			t.Errorf("%s: exit code %d: %v %v: %s", c.name, code, stores, outside, out)
		}
		for _, s := range outside {
			if err := os.RemoveAll(s); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestWaysAreAll: what opens a store in a folder, and where that folder comes from. A new caller belongs into
// this list, and a new way to find a store also into package locate and the list above.
func TestWaysAreAll(t *testing.T) {
	t.Parallel()
	const locate, path = "App.Locate", "a path that was given"
	want := map[string]string{
		"cli.With": locate, "cli.WithEmbedder": locate, "cli.open": "of WithIn",
		"main.adoptIn": locate, "main.editMemory": locate, "main.followIn": locate, "main.flushCommand": locate, "main.importFrom": locate,
		"main.saveEdited": locate, "main.searchCommand": locate,
		"upkeep.migrateStore": locate + "; --to: " + path, "upkeep.repairStore": locate, "upkeep.statusIn": locate,
		"upkeep.restoreBackup": path,
		"doctorcmd.open":       locate + ", or locate.DataFolder; it reports what is not used",
		"main.demoPut":         path, "main.demoWrite": path, "main.runDemo": path, "main.initCommand": path + ", or locate.Storage",
		"notecmd.adoption": locate, "notecmd.importFolder": locate,
		"remotecmd.Clone": path, "remotecmd.follow": locate, "remotecmd.take": locate,
		"servecmd.serveStores": "a folder below --stores, which was given",
		"mcpcmd.Served":        path + ", or locate.BesideFile, or locate.DataFolder",
	}
	opens := map[string]bool{"WithIn": true, "Open": true, "PlanRepair": true, "Migrate": true, "Restore": true,
		"Clone": true, "Take": true}
	found := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				s, ok := call.Fun.(*ast.SelectorExpr)
				x, isName := ast.Expr(nil), false
				if ok {
					x = s.X
					_, isName = x.(*ast.Ident)
				}
				if ok && isName && opens[s.Sel.Name] && (s.Sel.Name == "WithIn" || x.(*ast.Ident).Name == "varve") {
					found[file.Name.Name+"."+f.Name.Name] = true
				}
				return true
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
		t.Errorf("these open a store: %q", got)
	}
}
