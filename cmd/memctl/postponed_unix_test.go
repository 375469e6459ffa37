//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

const repeatNot = "is committed and safe in the log, do not repeat it; its files will be written by the " +
	"next command that is able to write them"

// TestFilesWaitForLock: a change that is durable, and whose files cannot be written because another
// process has flush.lock, is done: 0, and a warning. What reads ends with 0; what only flushes is locked.
func TestFilesWaitForLock(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.ok("put", "about cats", "--id", "a")
	c.ok("put", "about dogs", "--id", "b")
	c.ok("rm", "b")
	release := locked(t, c.store(), "flush.lock")
	for _, args := range [][]string{{"put", "about cows", "--id", "c"}, {"put", "more", "--id", "a", "-q"}, {"rm", "a"}, {"undelete", "b"}} {
		code, _, errOut := c.run("", append(args, "--wait", "50ms")...)
		if code != cli.CodeOK || !strings.Contains(errOut, repeatNot) || !strings.Contains(errOut, "flush.lock is locked by") {
			t.Errorf("memctl %q: exit code %d: %s", args, code, errOut)
		}
	}
	for _, args := range [][]string{{"get", "c"}, {"list"}, {"search", "cows"}, {"history", "a"}} {
		if code, out, errOut := c.run("", append(args, "--wait", "50ms")...); code != cli.CodeOK || out == "" || strings.Contains(errOut, "repeat") {
			t.Errorf("memctl %q: exit code %d: %s", args, code, errOut)
		}
	}
	if code, _, errOut := c.run("", "flush", "--wait", "50ms"); code != cli.CodeLocked {
		t.Errorf("memctl flush: exit code %d: %s", code, errOut)
	}
	release()
	c.ok("flush")
	for id, want := range map[string]string{"a": "", "b": "about dogs", "c": "about cows"} {
		b, _ := os.ReadFile(filepath.Join(c.store(), "memories", id+".json"))
		if (want == "") != (len(b) == 0) || !strings.Contains(string(b), want) {
			t.Errorf("%s has %q", id, b)
		}
	}
}

// TestOutcomeUnknown: a put that is written and could not be made durable, because another process
// has sync.lock, is neither done nor undone: it may not pass for one that found the store locked.
func TestOutcomeUnknown(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	locked(t, c.store(), "sync.lock")
	code, _, errOut := c.run("", "put", "about cows", "--id", "c", "--wait", "50ms")
	if code != cli.CodeInternal || !strings.Contains(errOut, "memctl get") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}

// TestFilesOfAnother: a folder of files that this user may not write does not undo what the log has.
func TestFilesOfAnother(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "memctl-another-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	memctl := unprivileged(t, dir)
	for _, args := range [][]string{{"init"}, {"put", "about cats", "--id", "a"}} {
		if code, out := memctl(args...); code != cli.CodeOK {
			t.Fatalf("memctl %q: exit code %d: %s", args, code, out)
		}
	}
	folder := filepath.Join(dir, "storage", "memories")
	if err := os.Chmod(folder, 0o500); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"put", "about cows", "--id", "c"}, {"rm", "a"}} {
		if code, out := memctl(args...); code != cli.CodeOK || !strings.Contains(out, repeatNot) || !strings.Contains(out, folder) {
			t.Errorf("memctl %q: exit code %d: %s", args, code, out)
		}
	}
	if code, out := memctl("get", "c", "--content"); code != cli.CodeOK || !strings.Contains(out, "about cows") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if code, out := memctl("flush"); code != cli.CodePermission {
		t.Errorf("memctl flush: exit code %d: %s", code, out)
	}
}
