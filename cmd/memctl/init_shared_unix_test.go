//go:build unix

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// A store of a group is open to the group in every file, whatever the umask; others are refused.
func TestInitShared(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	shared := filepath.Join(c.dir, "shared")
	c.ok("init", "--shared=group", shared)
	c.ok("--store", shared, "put", "text", "--id", "a")
	c.ok("--store", shared, "rebuild-index")
	c.ok("init", "--shared=group", shared) // it is one already
	err := filepath.WalkDir(shared, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		want := fs.FileMode(0o660)
		if d.IsDir() {
			want = fs.ModeDir | fs.ModeSetgid | 0o770
		}
		if err == nil && info.Mode() != want {
			t.Errorf("%s: %s, want %s", path, info.Mode(), want)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	moved := filepath.Join(c.dir, "moved")
	c.ok("--store", shared, "migrate", "--to", moved, "--switch")
	for _, name := range []string{"", "wal", "memories"} {
		if info, err := os.Stat(filepath.Join(moved, name)); err != nil || info.Mode() != fs.ModeDir|fs.ModeSetgid|0o770 {
			t.Errorf("moved: %s: %v, %v", name, info.Mode(), err)
		}
	}

	c.ok("init", c.store())
	if info, err := os.Stat(c.store()); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if code, _, errOut := c.run("", "init", "--shared=group", c.store()); code != cli.CodeRefused || !strings.Contains(errOut, "chmod -R g+rwX") {
		t.Errorf("a private store is not shared by init: %d, %s", code, errOut)
	}
	if code, _, errOut := c.run("", "init", "--shared=all", filepath.Join(c.dir, "x")); code != 64 || !strings.Contains(errOut, "user or group") {
		t.Errorf("%d, %s", code, errOut)
	}
}
