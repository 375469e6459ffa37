//go:build unix

package main

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// While it runs every edit is adopted and shown in one line, and SIGTERM ends it with 0.
func TestWatchAdopt(t *testing.T) {
	t.Parallel()
	for _, by := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		c := newCLI(t)
		c.ok("put", "one", "--id", "a")
		c.ok("put", "two", "--id", "b")
		wait, out, end, errOut := startWatchTo(t, c, by, "--adopt")
		lines := bufio.NewReader(out)
		next := func() []string {
			t.Helper()
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatalf("%q, %v: %s", line, err, errOut)
			}
			return strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		}
		file := func(id string) string { return filepath.Join(c.store(), "memories", id+".json") }
		text, err := os.ReadFile(file("a"))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, file("a"), strings.Replace(string(text), "one", "by hand", 1))
		if l := next(); len(l) != 4 || l[1] != "adopted" || l[2] != "memories/a.json" || l[3] != "a" {
			t.Errorf("%q", l)
		}
		if text := c.ok("get", "a", "--content"); text != "by hand" {
			t.Errorf("%q", text)
		}
		if text := c.ok("status"); !strings.Contains(text, "watches the files and adopts edits") {
			t.Error(text)
		}
		if err := os.Remove(file("b")); err != nil {
			t.Fatal(err)
		}
		if l := next(); len(l) != 4 || l[1] != "deleted" || l[3] != "b" {
			t.Errorf("%q", l)
		}
		end()
		if code := wait(); code != cli.CodeOK {
			t.Errorf("%v: exit code %d: %s", by, code, errOut)
		}
		if said := errOut.String(); !strings.Contains(said, "watching the files of") {
			t.Error(said)
		}
		if text := c.ok("status"); !strings.Contains(text, "no process watches the files") {
			t.Error(text)
		}
		if text := c.ok("verify"); !strings.Contains(text, "no damage found") {
			t.Error(text)
		}
	}
}

// A store that another process has locked is waited for; nothing is printed with -q.
func TestWatchAdoptBusy(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.ok("put", "one", "--id", "a")
	lock, err := os.OpenFile(filepath.Join(c.store(), "wal", "open.lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	cmd := command(t, "watch", "--adopt", "--json", "--wait", "50ms", "--store", c.store())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errOut, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	notes := bufio.NewReader(errOut)
	for line := ""; !strings.Contains(line, "the store is busy"); {
		if line, err = notes.ReadString('\n'); err != nil {
			t.Fatal(line, err)
		}
	}
	writeFile(t, filepath.Join(c.store(), "memories", "new.json"), `{"id":"new","content":"by hand"}`)
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, `"did":"adopted","path":"memories/new.json","id":"new"`) {
		t.Fatal(line, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// What cannot be written is refused with the reason, at once.
func TestWatchAdoptRefuses(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	for _, w := range []struct {
		code int
		args []string
		says string
	}{
		{64, []string{"--since", "0"}, "--adopt and --since cannot be combined"},
		{64, []string{"--session", "s"}, "--adopt and --session cannot be combined"},
		{cli.CodeNoStore, []string{"--store", c.dir + "/none"}, "no store"},
	} {
		code, _, errOut := c.run("", append([]string{"watch", "--adopt"}, w.args...)...)
		if code != w.code || !strings.Contains(errOut, w.says) {
			t.Errorf("%q: exit code %d: %s", w.args, code, errOut)
		}
	}
}

// Nor does it watch what it could not adopt: a store of another user.
func TestWatchAdoptReadOnly(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "memctl-adopt-")
	if err != nil {
		t.Fatal(err)
	}
	every := func(file, folder os.FileMode) {
		_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, _ error) error {
			if d.IsDir() {
				return os.Chmod(path, folder)
			}
			return os.Chmod(path, file)
		})
	}
	t.Cleanup(func() { every(0o700, 0o700); _ = os.RemoveAll(dir) })
	c := &inProcess{t, dir}
	c.ok("init", c.store())
	c.ok("put", "one", "--id", "a")
	every(0o444, 0o555)
	run := unprivileged(t, dir)
	if code, said := run("watch", "--adopt", "--store", "storage"); code != cli.CodePermission || !strings.Contains(said, "edits cannot be adopted without writing to the store") {
		t.Errorf("exit code %d: %s", code, said)
	}
}
