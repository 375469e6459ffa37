package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// A store is not made inside of another one, wherever in it, and whichever way leads there.
func TestInitWithin(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.ok("put", "x", "--id", "a", "-q")
	link := filepath.Join(c.dir, "link")
	if err := os.Symlink(c.store(), link); err != nil {
		t.Skip(err)
	}
	for _, dir := range []string{"memories", "memories/x/y", "assemblies", "wal", "wal/archive", "backups", "tmp", "quarantine", "mine"} {
		for _, above := range []string{c.store(), link} {
			for _, args := range [][]string{{"init", filepath.Join(above, dir)}, {"--store", filepath.Join(above, dir), "init"}, {"demo", filepath.Join(above, dir)}} {
				code, out, errOut := c.run("", args...)
				if code != cli.CodeRefused || !strings.Contains(errOut, "is inside the store "+c.store()) {
					t.Errorf("memctl %q: exit code %d: %s%s", args, code, out, errOut)
				}
			}
		}
		if _, err := os.Stat(filepath.Join(c.store(), dir, "config.json")); err == nil {
			t.Errorf("%s has become a store", dir)
		}
	}
	inward := filepath.Join(c.dir, "inward") // what is above it is no store, by its name
	if err := os.Symlink(filepath.Join(c.store(), "memories"), inward); err != nil {
		t.Fatal(err)
	}
	if code, out, errOut := c.run("", "init", filepath.Join(inward,
		"new")); code != cli.CodeRefused || !strings.Contains(errOut, "is inside the store "+c.store()) {
		t.Errorf("through a link into the store: exit code %d: %s%s", code, out, errOut)
	}
	if os.Geteuid() == 0 { // what another user has left above is in nobody's way
		if err := os.WriteFile(filepath.Join(c.dir, "config.json"), []byte(`{"varve":1}`), 0o644); err != nil {
			t.Fatal(err)
		}
		if code, _, _ := c.run("", "init", filepath.Join(c.dir, "below")); code != cli.CodeRefused {
			t.Errorf("in a store of one's own: exit code %d", code)
		}
		if err := os.Chmod(c.dir, 0o777|os.ModeSticky); err != nil {
			t.Fatal(err)
		}
		if err := os.Lchown(filepath.Join(c.dir, "config.json"), 4321, 4321); err != nil {
			t.Fatal(err)
		}
		c.ok("init", filepath.Join(c.dir, "below"))
		if err := os.Remove(filepath.Join(c.dir, "config.json")); err != nil {
			t.Fatal(err)
		}
	}
	c.ok("init", c.store()) // itself
	c.ok("init", filepath.Join(c.dir, "beside"))
}

// Neither restore nor migrate makes a store inside of another one, and a backup goes there into backups/ alone.
func TestCopiesWithin(t *testing.T) {
	t.Parallel()
	c, other := newCLI(t), newCLI(t)
	c.ok("put", "x", "--id", "a", "-q")
	backup := filepath.Join(c.dir, "backup")
	c.ok("backup", backup)
	for _, above := range []string{c.store(), other.store()} {
		for _, dir := range []string{"new", "memories/new", "wal/archive/new", "quarantine/new", "backups/../tmp/new"} {
			to := above + "/" + dir
			for _, args := range [][]string{{"restore", backup, to}, {"backup", to}, {"migrate", "--to", to}} {
				code, out, errOut := c.run("", args...)
				if code != cli.CodeRefused || !strings.Contains(errOut, "is inside the store "+above) {
					t.Errorf("memctl %q: exit code %d: %s%s", args, code, out, errOut)
				}
			}
			if _, err := os.Lstat(to); err == nil {
				t.Errorf("%s is there", to)
			}
		}
	}
	if code, _, errOut := c.run("", "restore", backup, filepath.Join(c.store(), "backups", "new")); code != cli.CodeRefused {
		t.Errorf("a store in backups/: exit code %d: %s", code, errOut)
	}
	c.ok("backup", filepath.Join(c.store(), "backups", "one"))
	c.ok("verify")
	c.ok("restore", filepath.Join(c.store(), "backups", "one"), filepath.Join(c.dir, "restored"))
	c.ok("migrate", "--to", filepath.Join(c.dir, "moved"), "--switch")
}
