package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/scratch"
)

// immutable sets or clears the flag that chattr +i sets.
func immutable(t *testing.T, dir string, on bool) error {
	t.Helper()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	flags, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err != nil {
		return err
	}
	const flag = 0x10 // FS_IMMUTABLE_FL
	if flags &^= flag; on {
		flags |= flag
	}
	return unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(flags))
}

// FAILURES 189: a folder of the store that takes no files, such as an immutable one, does not prevent a
// backup: what its files lack is taken from the log.
func TestImmutableFolder(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"memories", "assemblies", "tmp", "backups", "quarantine", "."} {
		c := &inProcess{t, scratch.Disk(t)}
		c.ok("init", c.store())
		c.ok("put", "first", "--id", "a", "--store", c.store())
		c.ok("flush", "--store", c.store())
		dir := filepath.Join(c.store(), folder)
		if err := immutable(t, dir, true); err != nil {
			t.Skipf("VARVE_LONG=1 as root on ext4, xfs or btrfs: no immutable folders here: %v", err)
		}
		t.Cleanup(func() { _ = immutable(t, dir, false) })
		c.ok("put", "second", "--id", "a", "--store", c.store())
		c.ok("put", "other", "--id", "b", "--store", c.store())
		c.ok("assembly", "put", "--id", "g", "a", "--store", c.store())
		backup := filepath.Join(c.dir, "backup")
		code, out, errOut := c.run("", "backup", backup, "--store", c.store())
		if err := immutable(t, dir, false); err != nil {
			t.Fatal(err)
		}
		if code != cli.CodeOK {
			t.Errorf("%s: exit code %d: %s%s", folder, code, out, errOut)
			continue
		}
		restored := filepath.Join(c.dir, "restored")
		c.ok("restore", backup, restored)
		if out := c.ok("list", "--store", restored); !strings.Contains(out, "second") || !strings.Contains(out, "other") {
			t.Errorf("%s: %s", folder, out)
		}
		if out := c.ok("assembly", "list", "--store", restored); !strings.Contains(out, "g") {
			t.Errorf("%s: %s", folder, out)
		}
		if out := c.ok("verify", "--store", restored); !strings.Contains(out, "no damage found") {
			t.Errorf("%s: %s", folder, out)
		}
	}
}
