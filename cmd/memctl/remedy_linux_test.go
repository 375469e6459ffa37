package main

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/storetest"
)

// A disk that is full, then read-only, as the command tells it. Where no disk can be
// mounted, TestClassify and TestRemedy, and the library's on a simulated disk, have it all.
func TestFullAndReadOnlyDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if os.Getuid() != 0 || syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=80m") != nil {
		return
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	c := &inProcess{t, dir}
	c.ok("init", c.store())
	c.ok("put", "x", "--id", "a", "-q")
	source := newCLI(t)
	source.ok("put", strings.Repeat("x", 200_000), "--id", "large")

	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, int64(st.Bavail)*st.Bsize), 0o600); err == nil || !strings.Contains(err.Error(), "no space") {
		if err != nil {
			t.Fatal(err)
		}
	}
	told := func(code int, kind, path, fix string, args ...string) {
		t.Helper()
		got, out, errOut := c.run("", append(args, "--json")...)
		var d struct{ Error cli.Failure }
		if err := json.Unmarshal([]byte(out), &d); err != nil || got != code || d.Error.Kind != kind || d.Error.Path != path || !strings.Contains(d.Error.Fix, fix) {
			t.Errorf("memctl %.100q: exit code %d, %+v, %s", args, got, d.Error, errOut)
		}
	}
	// There is space in the log still, for a few.
	if code, _, errOut := c.run("", "put", storetest.Text(1_000_000), "--id", "b"); code != 0 ||
		!strings.Contains(errOut, "the change is committed and safe in the log, do not repeat it; its files will be written") || !strings.Contains(errOut, "low space") {
		t.Errorf("a put whose file has no space: %d, %s", code, errOut)
	}
	puts := 0
	noise := func() string { // that does not compress
		b := make([]byte, 100_000)
		_, _ = rand.Read(b)
		return hex.EncodeToString(b)
	}
	for ; puts < 200; puts++ {
		if _, _, errOut := c.run("", "put", noise(), "-q"); !strings.Contains(errOut, "the change is committed") {
			break
		}
	}
	told(cli.CodeDiskFull, "disk full", filepath.Join(c.store(), "wal"), "free space on the disk of ", "put", noise())
	if _, out, errOut := c.run("", "rm", "a"); out != "deleted a\n" {
		t.Errorf("deleting, after %d puts: %s%s", puts, out, errOut)
	}
	to := filepath.Join(dir, "moved")
	told(cli.CodeDiskFull, "disk full", to, "free space on the disk of ", "migrate", "--store", source.store(), "--to", to, "--switch")
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	c.ok("put", "z", "--id", "c")
	source.ok("migrate", "--to", to, "--switch", "-q")

	// A process that another test starts has the files that were open until it runs its program.
	err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
	for end := time.Now().Add(10 * time.Second); errors.Is(err, syscall.EBUSY) && time.Now().Before(end); runtime.Gosched() {
		err = syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
	}
	if err != nil {
		t.Fatal(err)
	}
	told(cli.CodePermission, "permission", c.store(), "mount -o remount,rw "+dir, "put", "x")
	if out := c.ok("get", "c", "--content"); out != "z" {
		t.Errorf("reading: %q", out)
	}
	p := mcpStart(t, []string{cli.StoreVariable + "=" + c.store()}, memctlBinary(t), "mcp")
	if m := p.tool("recall", `{"query":"z","limit":1}`); !strings.Contains(fmt.Sprint(m), "] z") {
		t.Error(m)
	}
	if m := p.tool("remember", `{"text":"no"}`); !strings.Contains(fmt.Sprint(m), "the store is read-only") {
		t.Error(m)
	}
	if err := p.end(); err != nil || !strings.Contains(p.stderr.String(), "the store is opened read-only") {
		t.Errorf("%v, %s", err, p.stderr.String())
	}
}
