package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/upkeep"
)

// TestReadOnlyMedium: a store on a file system that is mounted read-only, and one whose folder this
// user may not write, can be read, searched, verified, its history shown, and backed up to another
// place. Status says why nothing can be written, a change is refused with the same, and no advice is
// about the whole system. The mount is a real one, in a namespace of the command.
func TestReadOnlyMedium(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "memctl-medium-")
	if err != nil {
		t.Fatal(err)
	}
	c := &inProcess{t, dir}
	t.Cleanup(func() {
		_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, _ error) error { return os.Chmod(path, 0o700) })
		_ = os.RemoveAll(dir)
	})
	c.ok("put", "before", "--id", "a", "--store", c.storeMade())
	c.ok("put", "the harbour at night", "--id", "a")
	c.ok("put", "another", "--id", "b")
	program, err := exec.LookPath("memctl")
	if err != nil {
		t.Fatal(err)
	}
	mounted := func(args ...string) (int, string) {
		t.Helper()
		script := `mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" || exit 99; shift; exec "$@"`
		cmd := exec.Command("/bin/sh", append([]string{"-c", script, "sh", c.store(), program}, args...)...)
		cmd.Dir = dir
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), string(out)
	}
	// try runs everything; why is what status and refusals say, fix the advice.
	try := func(name string, memctl func(args ...string) (int, string), why, fix string) {
		target := filepath.Join(dir, "to")
		if err := os.Mkdir(target, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(target, 0o777); err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(target)
		before := quoted(t, tree(t, c.store()))
		for _, r := range []struct {
			args []string
			want string
		}{
			{[]string{"get", "a", "--content"}, "the harbour at night"}, {[]string{"list"}, "another"},
			{[]string{"search", "harbour"}, "harbour at night"}, {[]string{"verify"}, "no damage found"},
			{[]string{"history", "a"}, "sha256"}, {[]string{"backup", filepath.Join(target, "copy")}, "is complete"},
			{[]string{"status"}, why}, {[]string{"status"}, "changes are refused: " + fix}, {[]string{"repair"}, "nothing to repair"},
		} {
			if code, out := memctl(append(r.args, "--store", c.store())...); code != cli.CodeOK || !strings.Contains(out, r.want) {
				t.Errorf("%s: %q: exit code %d, want %q: %s", name, r.args, code, r.want, out)
			}
		}
		var s upkeep.State
		if _, out := memctl("status", "--json", "--store", c.store()); json.Unmarshal([]byte(out), &s) != nil || s.Writable || !strings.Contains(s.ReadOnly, why) {
			t.Errorf("%s: status: %s", name, out)
		}
		for _, args := range [][]string{{"put", "x", "--id", "a"}, {"rm", "a"}, {"flush"}, {"config", "set", "max_memories", "9"}, {"purge", "a", "--yes"}} {
			if code, out := memctl(append(args, "--store", c.store())...); code != cli.CodePermission || !strings.Contains(out, why) || !strings.Contains(out, fix) {
				t.Errorf("%s: %q: exit code %d, want %d and %q, %q: %s", name, args, code, cli.CodePermission, why, fix, out)
			}
		}
		if after := quoted(t, tree(t, c.store())); after != before {
			t.Errorf("%s: the tree has changed:\n%s\n%s", name, before, after)
		}
		restored := filepath.Join(target, "restored")
		c.ok("restore", filepath.Join(target, "copy"), restored)
		if got := c.ok("get", "a", "--content", "--store", restored); got != "the harbour at night" {
			t.Errorf("%s: restored: %q", name, got)
		}
	}
	if os.Getuid() == 0 {
		const mode = "is on a file system that is mounted read-only"
		try("a mount", mounted, c.store()+" "+mode, "mount -o remount,rw "+c.store())
		cmd := exec.Command("/bin/sh", "-c", `mount -o remount,bind,ro / || exit 99; exec "$@"`, "sh", program, "init", "/varve-test-none/store")
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != cli.CodePermission ||
			!strings.Contains(string(out), "choose a folder on another file system") ||
			strings.Contains(string(out), "remount") {
			t.Errorf("the whole system is read-only: exit code %d: %s", code, out)
		}
	} else {
		t.Log("only root can mount: the part with a real mount was left out")
	}
	for _, path := range tree(t, c.store()) {
		path = filepath.Join(c.store(), path)
		mode := os.FileMode(0o444)
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			mode = 0o555
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{c.store(), dir} {
		if err := os.Chmod(path, 0o555); err != nil {
			t.Fatal(err)
		}
	}
	memctl := func() func(args ...string) (int, string) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		return unprivileged(t, dir)
	}()
	why, fix := "belongs to another user", ""
	if os.Getuid() != 0 {
		why = "does not let its owner write"
	}
	try("modes", memctl, why, fix)
}

// storeMade is the store, made.
func (c *inProcess) storeMade() string {
	c.ok("init", c.store())
	return c.store()
}
