package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// TestNoInodes: what makes many files says inodes where these are exhausted, and not space.
func TestNoInodes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if os.Getuid() != 0 || syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=200m,nr_inodes=80") != nil {
		t.Skip("no tmpfs can be mounted; on a simulated disk TestClassify and TestRemedy have the rule")
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	c, source := &inProcess{t, dir}, newCLI(t)
	for _, id := range []string{"a", "b", "c"} {
		source.ok("put", "text", "--id", id)
	}
	backup := filepath.Join(source.dir, "backup")
	source.ok("backup", backup)
	c.ok("init", c.store())
	c.ok("put", "text", "--id", "a")
	says := func(free int, args ...string) {
		t.Helper()
		fillInodes(t, dir)
		names, err := os.ReadDir(filepath.Join(dir, "f"))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range names[:free] {
			if err := os.Remove(filepath.Join(dir, "f", e.Name())); err != nil {
				t.Fatal(err)
			}
		}
		for _, more := range [][]string{nil, {"--json"}} {
			code, out, errOut := c.run("", append(args, more...)...)
			if code != cli.CodeDiskFull || !strings.Contains(errOut+out, "df -i") || strings.Contains(errOut+out, "free disk space") {
				t.Errorf("memctl %q with %d inodes left: exit code %d: %s%s", args, free, code, errOut, out)
			}
		}
		if err := os.RemoveAll(filepath.Join(dir, "f")); err != nil {
			t.Fatal(err)
		}
	}
	for free := range 4 {
		says(free, "init", filepath.Join(dir, "new", "store"))
		says(free, "restore", backup, filepath.Join(dir, "restored"))
		says(free, "backup", filepath.Join(dir, "saved"))
		says(free, "--store", source.store(), "backup", filepath.Join(dir, "theirs"))
		says(free, "--store", source.store(), "migrate", "--to", filepath.Join(dir, "moved"))
	}
	says(0, "rebuild-index")
}
