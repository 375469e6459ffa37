package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// inProcess runs commands in this process, in a folder of its own with a store.
type inProcess struct {
	t   *testing.T
	dir string // storage/ is the store
}

func newCLI(t *testing.T) *inProcess {
	t.Helper()
	c := &inProcess{t, t.TempDir()}
	c.ok("init", c.store())
	return c
}

func (c *inProcess) store() string { return filepath.Join(c.dir, "storage") }

// run gives exit code, stdout and stderr.
func (c *inProcess) run(stdin string, args ...string) (int, string, string) {
	c.t.Helper()
	var out, errOut bytes.Buffer
	env := cli.Environment{
		Getenv: func(string) string { return "" },
		Getwd:  func() (string, error) { return c.dir, nil },
		Clock:  time.Now,
	}
	code := run(c.t.Context(), args, strings.NewReader(stdin), &out, &errOut, env)
	return code, out.String(), errOut.String()
}

func (c *inProcess) ok(args ...string) string {
	c.t.Helper()
	code, out, errOut := c.run("", args...)
	if code != cli.CodeOK {
		c.t.Fatalf("memctl %.200q: exit code %d: %s%s", args, code, errOut, out)
	}
	return out
}

// ids are those of all memories.
func (c *inProcess) ids() []string {
	c.t.Helper()
	var d struct{ Memories []struct{ ID string } }
	if err := json.Unmarshal([]byte(c.ok("list", "--limit", "0", "--json")), &d); err != nil {
		c.t.Fatal(err)
	}
	var ids []string
	for _, m := range d.Memories {
		ids = append(ids, m.ID)
	}
	return ids
}

// tree are all paths below a folder.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		rel, rerr := filepath.Rel(dir, path)
		if rerr == nil {
			all = append(all, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func quoted(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
