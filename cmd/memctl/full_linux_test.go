package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// What reads ends with 0 on a disk that is full, of bytes or of inodes, and so does a put that is
// durable: it warns that it must not be repeated. What only flushes fails.
func TestFullDiskIsNoFailure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, options, says string
		fill                func(t *testing.T, dir string)
	}{
		{"bytes", "size=8m", "0 bytes free for", fillBytes},
		{"inodes", "size=200m,nr_inodes=80", "no inode is free on the file system of", fillInodes},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if os.Getuid() != 0 || syscall.Mount("tmpfs", dir, "tmpfs", 0, c.options) != nil {
				t.Skip("no tmpfs can be mounted; on a simulated disk TestClassify and TestRemedy have it")
			}
			t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
			onFullDisk(t, &inProcess{t, dir}, c.says, c.fill)
		})
	}
}

func onFullDisk(t *testing.T, c *inProcess, says string, fill func(*testing.T, string)) {
	t.Helper()
	c.ok("init", c.store())
	c.ok("put", "about cats", "--id", "a", "-q")
	c.ok("put", "about dogs", "--id", "b", "-q")
	fill(t, c.dir)
	reads := func() {
		t.Helper()
		for _, args := range [][]string{
			{"get", "a"}, {"list"}, {"search", "cats"}, {"status"}, {"history", "b"}, {"verify"}, {"status", "--json"},
			{"doctor"},
		} {
			want := cli.CodeOK
			if args[0] == "status" { // which says by it how the store is
				want = cli.CodeDiskFull
			}
			if code, out, errOut := c.run("", args...); code != want || out == "" {
				t.Errorf("memctl %q on a full disk: exit code %d: %s%s", args, code, errOut, out)
			}
		}
	}
	reads()
	for _, args := range [][]string{{"put", "new", "--id", "c"}, {"put", "more about dogs", "--id", "b"}, {"put", "new", "--id", "d", "-q"}} {
		code, _, errOut := c.run("", args...)
		if code != 0 || !strings.Contains(errOut, "is committed and safe in the log, do not repeat it; its files will be written when there is space") || !strings.Contains(errOut, says) {
			t.Errorf("memctl %q on a full disk: exit code %d: %s", args, code, errOut)
		}
	}
	if code, _, errOut := c.run("", "flush"); code != cli.CodeDiskFull || !strings.Contains(errOut, says) {
		t.Errorf("memctl flush on a full disk: exit code %d: %s", code, errOut)
	}
	reads()
	if out := c.ok("get", "b", "--content"); out != "more about dogs" {
		t.Errorf("the memory is %q", out)
	}
	if code, _, errOut := c.run("", "rm", "a"); code != 0 {
		t.Errorf("memctl rm on a full disk: exit code %d: %s", code, errOut)
	}
	for _, name := range []string{"ballast", "f"} {
		if err := os.RemoveAll(filepath.Join(c.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if code, _, errOut := c.run("", "flush"); code != 0 || strings.Contains(errOut, "disk full") {
		t.Errorf("memctl flush with space again: exit code %d: %s", code, errOut)
	}
	for _, id := range []string{"b", "c", "d"} {
		if _, err := os.Stat(filepath.Join(c.store(), "memories", id+".json")); err != nil {
			t.Error(err)
		}
	}
}

func fillBytes(t *testing.T, dir string) {
	t.Helper()
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ballast"), make([]byte, int64(st.Bavail)*st.Bsize), 0o600); err != nil {
		t.Fatal(err)
	}
}

func fillInodes(t *testing.T, dir string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(dir, "f"), 0o700); err != nil {
		t.Fatal(err)
	}
	for n := 0; ; n++ {
		f, err := os.CreateTemp(filepath.Join(dir, "f"), "")
		if err != nil {
			return
		}
		if err := f.Close(); err != nil || n == 1000 {
			t.Fatalf("the file system takes %d files: %v", n, err)
		}
	}
}
