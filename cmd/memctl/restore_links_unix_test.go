//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// TestRestoreLinkedLog: a link or a FIFO in the place of a backup's log costs what only the log has. The rest
// is restored, and the link leads nowhere.
func TestRestoreLinkedLog(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.ok("put", "about cats", "--id", "a")
	outside := filepath.Join(c.dir, "outside")
	if err := os.WriteFile(outside, []byte("not of a log"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, put := range map[string]func(path string) error{
		"a link":             func(path string) error { return os.Symlink(outside, path) },
		"a link to nothing":  func(path string) error { return os.Symlink(filepath.Join(c.dir, "none"), path) },
		"a FIFO":             func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a folder":           func(path string) error { return os.Mkdir(path, 0o700) },
		"nothing":            func(string) error { return nil },
		"a link of a folder": func(path string) error { return os.Symlink(c.dir, path) },
	} {
		backup, to := filepath.Join(c.dir, "backup of "+name), filepath.Join(c.dir, "from "+name)
		c.ok("backup", backup)
		path := filepath.Join(backup, "wal", "00000001.wal")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := put(path); err != nil {
			t.Fatal(err)
		}
		code, out, errOut := c.run("", "restore", backup, to)
		if code != cli.CodeLost && code != cli.CodeDamage || !strings.Contains(errOut, "is damaged in the backup") {
			t.Errorf("%s: exit code %d: %s%s", name, code, out, errOut)
		}
		if got := c.ok("get", "a", "--content", "--store", to); got != "about cats" {
			t.Errorf("%s: %q", name, got)
		}
		if code, out, errOut := c.run("", "restore", backup, to+" strictly", "--strict"); code == cli.CodeOK {
			t.Errorf("%s: strictly: %s%s", name, out, errOut)
		}
	}
}

// A link that leads to an empty folder, such as a volume, stays a link: the backup and the restored store are where it
// leads.
func TestTargetIsALink(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.ok("put", "first", "--id", "a")
	link := func(name string) (real, at string) {
		real, at = filepath.Join(c.dir, name+" itself"), filepath.Join(c.dir, name)
		if err := os.Mkdir(real, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(real, at); err != nil {
			t.Fatal(err)
		}
		return real, at
	}
	backup, to := link("backup")
	c.ok("backup", to)
	c.ok("backup", "--check", backup)
	restored, at := link("restored")
	c.ok("restore", to, at)
	if got := c.ok("get", "a", "--content", "--store", restored); got != "first" {
		t.Errorf("restored: %q", got)
	}
	for _, name := range []string{to, at} {
		if info, err := os.Lstat(name); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("%s is no link any more: %v", name, err)
		}
	}
}
