package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/vfs"
)

// leaseOf takes a lease of this process on a file, which it keeps until it is released. Go programs
// ignore the signal by which the system asks for it back.
func leaseOf(t *testing.T, name string) (release func()) {
	t.Helper()
	f, err := vfs.OS().OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	ok, err := f.Lease()
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("VARVE_LONG=1 on another file system: this one has no leases")
	}
	if err != nil || !ok {
		t.Fatalf("no lease on %s: %v", name, err)
	}
	return func() { _ = f.Close() }
}

// FAILURES 183: a process that keeps a lease on a file of the store, as another member of its group
// may, delays a command for --wait and not for the 45 s of the system. The error names both.
func TestLeased(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	for i := range 40 {
		c.ok("put", fmt.Sprintf("text %d", i), "--id", fmt.Sprintf("m%02d", i), "--store", c.store())
	}
	c.ok("flush", "--store", c.store())
	holder := fmt.Sprintf("process %d", os.Getpid())
	for _, file := range []string{"memories/m01.json", "config.json", "checkpoint", "memory_index.json", "wal/shared", "wal/open.lock", "wal/append.lock", "wal/00000001.wal"} {
		release := leaseOf(t, filepath.Join(c.store(), file))
		for _, args := range [][]string{{"get", "m01"}, {"put", "new", "--id", "m01"}} {
			args = append(args, "--wait", "100ms", "--store", c.store())
			code, out := endsSoon(t, c.dir, args...)
			if args[0] == "put" && file == "memories/m01.json" {
				// Committed, and the file is made later.
				if code != cli.CodeOK || !strings.Contains(out, holder) || !strings.Contains(out, "do not repeat it") {
					t.Errorf("%s: %q: exit code %d: %s", file, args, code, out)
				}
				continue
			}
			if code != cli.CodeLocked || !strings.Contains(out, file) || !strings.Contains(out, holder) {
				t.Errorf("%s: %q: exit code %d: %s", file, args, code, out)
			}
		}
		if code, out := endsSoon(t, c.dir, "verify", "--wait", "100ms", "--store", c.store()); code != cli.CodeLocked && code != cli.CodeOK || strings.Contains(out, "damage:") {
			t.Errorf("%s: verify: exit code %d: %s", file, code, out)
		}
		release()
		if out := c.ok("get", "m01", "--store", c.store()); !strings.Contains(out, "m01") {
			t.Errorf("%s: after the lease: %s", file, out)
		}
	}
	c.ok("verify", "--store", c.store())

	// Many leases are not waited for one by one.
	for i := range 40 {
		defer leaseOf(t, filepath.Join(c.store(), "memories", fmt.Sprintf("m%02d.json", i)))()
	}
	if code, out := endsSoon(t, c.dir, "export", "--wait", "1s", "--store", c.store()); code != cli.CodeLocked {
		t.Errorf("export: exit code %d: %s", code, out)
	}
}

// A store that the search upwards meets is not passed over because its config.json has a lease.
func TestLeasedIsFound(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	inner := filepath.Join(c.dir, "inner")
	c.ok("init", filepath.Join(inner, "storage"))
	defer leaseOf(t, filepath.Join(inner, "storage", "config.json"))()
	if code, out := endsSoon(t, inner, "put", "x", "--wait", "100ms"); code != cli.CodeLocked {
		t.Errorf("exit code %d: %s", code, out)
	}
	if ids := c.ids(); len(ids) != 0 {
		t.Errorf("it went into the store above: %q", ids)
	}
}
