//go:build linux || darwin

package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// outputs are the commands that write a file that the user names.
func outputs(c *inProcess, file string) map[string][]string {
	return map[string][]string{
		"export":         {"export", "--file", file, "--store", c.store()},
		"working export": {"working", "export", "--file", file, "--store", c.store()},
		"manual":         {"manual", filepath.Dir(file)},
	}
}

// FAILURES 181: an output whose last rename is refused leaves nothing beside the file.
func TestOutputRenameRefused(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.ok("put", "private", "--id", "a", "--store", c.store())
	dir := filepath.Join(c.dir, "out")
	mount := filepath.Join(dir, "memctl.1")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mount, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	// A file that something is mounted on is refused to all, also to root.
	if err := bindMount(mount, mount); err != nil {
		t.Skipf("VARVE_LONG=1 as root runs it: no mounts here: %v", err)
	}
	defer func() { _ = unmount(mount) }()
	for name, args := range outputs(c, mount) {
		if code, out, errOut := c.run("", args...); code == cli.CodeOK {
			t.Errorf("%s: %s%s", name, out, errOut)
		}
		left, err := filepath.Glob(filepath.Join(dir, "*.part"))
		if b, rerr := os.ReadFile(mount); err != nil || rerr != nil || len(left) > 0 || string(b) != "old" {
			t.Errorf("%s left %q, and %q", name, left, b)
		}
	}
}

// FAILURES 182: what another user has put in the place of an output file does not get the output: a
// FIFO of his, and a link of his to a FIFO. One's own FIFO, /dev/stdout and a process substitution do.
func TestOutputForeignFIFO(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("VARVE_LONG=1 as root runs it: a file of another user is needed")
	}
	c := newCLI(t)
	c.ok("put", "private", "--id", "a", "--store", c.store())
	const other = 61001
	dir := filepath.Join(c.dir, "out")
	name := filepath.Join(dir, "memctl.1")
	plant := map[string]func() error{
		"FIFO": func() error { return os.Lchown(name, other, other) },
		"link": func() error {
			mine := filepath.Join(c.dir, "mine")
			_ = os.Remove(mine)
			if err := os.Rename(name, mine); err != nil {
				return err
			}
			if err := os.Symlink(mine, name); err != nil {
				return err
			}
			return os.Lchown(name, other, other)
		},
	}
	for kind, of := range plant {
		_ = os.RemoveAll(dir)
		fifo(t, name)
		if err := of(); err != nil {
			t.Fatal(err)
		}
		reader, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		for command, args := range outputs(c, name) {
			code, out, errOut := c.run("", args...)
			if code != cli.CodePermission || !strings.Contains(errOut, "of another user") {
				t.Errorf("%s to a foreign %s: exit code %d: %s%s", command, kind, code, out, errOut)
			}
		}
		buf := make([]byte, 100)
		if n, err := syscall.Read(int(reader.Fd()), buf); n > 0 {
			t.Errorf("the other user reads %q, %v", buf[:n], err)
		}
		_ = reader.Close()
	}
	_ = os.RemoveAll(dir)
	fifo(t, name)
	read := make(chan string)
	go func() {
		b, _ := os.ReadFile(name)
		read <- string(b)
	}()
	c.ok("export", "--file", name, "--store", c.store())
	if got := <-read; !strings.Contains(got, "private") {
		t.Errorf("one's own FIFO got %q", got)
	}
}

// An output that the caller has opened for memctl is written to, whichever user owns it.
func TestOutputInherited(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.ok("put", "private", "--id", "a", "--store", c.store())
	for _, name := range []string{"/dev/stdout", "/dev/fd/1", "-"} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if os.Geteuid() == 0 {
			if err := w.Chown(61001, 61001); err != nil {
				t.Fatal(err)
			}
		}
		cmd := command(t, "export", "--file", name, "--store", c.store())
		cmd.Stdout, cmd.Stderr = w, os.Stderr
		err = cmd.Run()
		_ = w.Close()
		b, _ := io.ReadAll(r)
		_ = r.Close()
		if err != nil || !strings.Contains(string(b), "private") {
			t.Errorf("%s: %v: %q", name, err, b)
		}
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("VARVE_LONG=1 where bash is installed")
	}
	memctl, _ := exec.LookPath("memctl")
	cmd := exec.Command(bash, "-c", `{ "$0" export --file >(cat >&3) --store "$1" >/dev/null; } 3>&1 | cat`, memctl, c.store())
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "private") {
		t.Errorf("a process substitution: %v: %s", err, out)
	}
}
