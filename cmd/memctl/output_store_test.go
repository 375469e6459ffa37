package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// No output of a command replaces a file of a store: export --file storage/wal/00000001.wal ended with 0, and the log
// was gone.
func TestOutputIntoAStore(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.ok("put", "about cats", "--id", "a")
	c.ok("working", "set", "k", "v", "--scope", "session:s")
	other := filepath.Join(c.dir, "other")
	c.ok("init", other)
	link := filepath.Join(c.dir, "link")
	if err := os.Symlink(c.store(), link); err != nil {
		t.Skip("no links here")
	}
	before := contentsBelow(t, c.dir)
	for _, target := range []string{
		filepath.Join(c.store(), "wal", "00000001.wal"), filepath.Join(c.store(), "checkpoint"), filepath.Join(c.store(), "config.json"),
		filepath.Join(c.store(), "memory_index.json"), filepath.Join(c.store(), "memories", "a.json"), filepath.Join(c.store(), "new"),
		filepath.Join(c.store(), "backups", "new"), filepath.Join(other, "config.json"), filepath.Join(link, "config.json"),
	} {
		for _, args := range [][]string{
			{"export", "--file", target}, {"export", "--file", target, "--json"}, {"export", "--to", "server-memory", "--file", target},
			{"working", "export", "--file", target}, {"manual", filepath.Dir(target)}, {"manual", filepath.Join(filepath.Dir(target), "man")},
		} {
			code, out, errOut := c.run("", args...)
			if code != cli.CodeRefused || !strings.Contains(out+errOut, "is inside the store") {
				t.Errorf("memctl %q: exit code %d: %s%s", args, code, errOut, out)
			}
		}
	}
	for name, was := range before {
		if now, err := os.ReadFile(name); err != nil || string(now) != was {
			t.Errorf("%s was changed: %v", name, err)
		}
	}
	c.ok("get", "a")
	c.ok("export", "--file", filepath.Join(c.dir, "outside.jsonl"))
}

// contentsBelow are the regular files below a folder that commands which only read leave as they are.
func contentsBelow(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.HasSuffix(path, ".lock") || strings.Contains(path, "shared") || strings.Contains(path, "owner") || strings.Contains(path, "checkpoint") {
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A command that writes a file which a user names does so by App.ReplaceFile, which refuses those of a store.
func TestOutputFilesHaveOneWay(t *testing.T) {
	t.Parallel()
	allowed := map[string]string{
		"internal/adopted/adopted.go os.OpenFile":  "wal/adopted of the store",
		"edit.go ReplaceGiven(":                    "a text to edit, in a new temporary folder",
		"internal/servecmd/ui.go os.WriteFile":     "the link for a browser, in a new temporary folder",
		"internal/cli/replace.go ReplaceGiven(":    "is the way",
		"internal/cli/replace.go vfs.ReplaceGiven": "is the way",
	}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			for _, call := range []string{"os.WriteFile", "os.Create(", "os.OpenFile", "ReplaceGiven("} {
				if strings.Contains(line, call) && !strings.HasPrefix(strings.TrimSpace(line), "//") && allowed[filepath.ToSlash(path)+" "+call] == "" {
					t.Errorf("%s: %s: write files by App.ReplaceFile", path, strings.TrimSpace(line))
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
