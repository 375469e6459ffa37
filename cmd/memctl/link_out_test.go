package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// TestLinkOut: a project that was cloned may have a link by the name of a store's folder. It leads no
// command to another store, and makes none; one that is named, or stays in the project, is used.
func TestLinkOut(t *testing.T) {
	t.Parallel()
	mine := newCLI(t)
	mine.ok("put", "a secret", "--id", "a")
	c := &inProcess{t, t.TempDir()}
	link := filepath.Join(c.dir, "storage")
	if err := os.Symlink(mine.store(), link); err != nil {
		t.Skip(err)
	}
	for _, args := range [][]string{{"get", "a"}, {"list"}, {"put", "x", "--id", "b"}, {"rm", "a"}, {"purge", "a", "--yes"}} {
		code, out, errOut := c.run("", args...)
		if code != cli.CodeNoStore || strings.Contains(out, "secret") || !strings.Contains(errOut, link+" is a link to "+mine.store()+" and is not used unless --store") || !strings.Contains(errOut, "--store "+link) {
			t.Errorf("memctl %q: exit code %d: %s%s", args, code, errOut, out)
		}
	}
	if ids := mine.ids(); len(ids) != 1 {
		t.Error(ids)
	}
	if out := c.ok("--store", link, "get", "a", "--content"); out != "a secret" {
		t.Error(out)
	}
	if code, out, errOut := c.run("", "init"); code != cli.CodeRefused || !strings.Contains(errOut, "is a link to "+mine.store()) {
		t.Errorf("memctl init: exit code %d: %s%s", code, errOut, out)
	}
	for name, to := range map[string]string{"empty": filepath.Join(mine.dir, "empty"), "to come": filepath.Join(mine.dir, "coming")} {
		if name == "empty" {
			if err := os.Mkdir(to, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
		if code, _, errOut := c.run("", "init"); code != cli.CodeRefused || !strings.Contains(errOut, "is a link to "+to) {
			t.Errorf("memctl init, where the link's end is %s: exit code %d: %s", name, code, errOut)
		}
		if names, _ := os.ReadDir(to); len(names) > 0 {
			t.Error(names)
		}
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	c.ok("init", filepath.Join(c.dir, "data", "store"))
	if err := os.Symlink(filepath.Join("data", "store"), link); err != nil {
		t.Fatal(err)
	}
	c.ok("put", "in the project", "--id", "p")
	if out := c.ok("get", "p", "--content"); out != "in the project" {
		t.Error(out)
	}
}
