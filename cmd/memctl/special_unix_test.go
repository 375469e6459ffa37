//go:build linux || darwin

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/proofs"
)

// endsSoon runs memctl in a folder, and fails the test when it waits for something.
func endsSoon(t *testing.T, dir string, args ...string) (code int, out string) {
	t.Helper()
	cmd := command(t, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), cli.StoreVariable+"=", "XDG_STATE_HOME="+filepath.Join(dir, ".state"))
	var b bytes.Buffer
	cmd.Stdout, cmd.Stderr = &b, &b
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
	case <-time.After(20 * time.Second):
		_ = cmd.Process.Kill()
		<-done
		t.Fatalf("memctl %q waits", args)
	}
	return cmd.ProcessState.ExitCode(), b.String()
}

func fifo(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A FIFO that somebody put above the store, where memctl looks for one, is passed over.
func TestSpecialAbove(t *testing.T) {
	proofs.OneGoroutine(t)
	t.Parallel()
	for _, place := range []string{"sub/config.json", "sub/moved.json", "sub/storage", "sub/storage/config.json", "sub/storage/moved.json", "config.json", "moved.json"} {
		c := newCLI(t)
		c.ok("put", "x", "--id", "a", "--store", c.store())
		fifo(t, filepath.Join(c.dir, place))
		sub := filepath.Join(c.dir, "sub")
		if err := os.MkdirAll(sub, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"status"}, {"put", "y"}, {"get", "a"}, {"verify"}} {
			if code, out := endsSoon(t, sub, args...); code != cli.CodeOK {
				t.Errorf("%s: %q: exit code %d: %s", place, args, code, out)
			}
		}
	}
	// A large file is no config.json either, and a note that says nothing is no note.
	for _, place := range []string{"config.json", "moved.json"} {
		c := newCLI(t)
		path := filepath.Join(c.dir, place)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, 8<<40); err != nil {
			t.Skipf("no files of 8 TiB here: %v", err)
		}
		if code, out := endsSoon(t, c.dir, "status"); code != cli.CodeOK {
			t.Errorf("%s: exit code %d: %s", place, code, out)
		}
	}
}

// Whatever is replaced by a FIFO, every command ends and names it, and a repair makes the
// store whole.
func TestSpecialInside(t *testing.T) {
	proofs.OneGoroutine(t)
	t.Parallel()
	for _, place := range []string{"config.json", "tmp", "wal", "backups", "quarantine", "tmp/parked", "memories/a.json", "wal/open.lock", "memory_index.json", "moved.json"} {
		c := newCLI(t)
		store := c.store()
		c.ok("put", "x", "--id", "a", "--store", store)
		path := filepath.Join(store, place)
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		fifo(t, path)
		for _, args := range [][]string{{"status"}, {"verify"}, {"repair"}, {"put", "y", "--id", "b"}, {"import", filepath.Join(c.dir, "none")}} {
			code, out := endsSoon(t, c.dir, append(args, "--store", store)...)
			if code == cli.CodeInternal {
				t.Errorf("%s: %q: an internal error: %s", place, args, out)
			}
			if args[0] == "verify" && (code == cli.CodeOK || !strings.Contains(out, place)) && place != "memories/a.json" {
				t.Errorf("%s: verify: exit code %d: %s", place, code, out)
			}
		}
		if code, out := endsSoon(t, c.dir, "repair", "--apply", "--store", store); code != cli.CodeOK {
			t.Errorf("%s: repair --apply: exit code %d: %s", place, code, out)
		}
		if code, out := endsSoon(t, c.dir, "verify", "--store", store); code != cli.CodeOK {
			t.Errorf("%s: verify afterwards: exit code %d: %s", place, code, out)
		}
		if code, out := endsSoon(t, c.dir, "get", "a", "--content", "--store", store); code != cli.CodeOK || strings.TrimSpace(out) != "x" {
			t.Errorf("%s: get afterwards: exit code %d: %s", place, code, out)
		}
	}
}

// A FIFO as the source of an import is refused, and nothing is made.
func TestSpecialSource(t *testing.T) {
	proofs.OneGoroutine(t)
	t.Parallel()
	c := newCLI(t)
	pipe := filepath.Join(c.dir, "pipe.jsonl")
	fifo(t, pipe)
	for _, from := range []string{"", "jsonl", "vizor", "synthians", "server-memory"} {
		args := []string{"import", pipe, "--store", c.store()}
		if from != "" {
			args = append(args, "--from", from)
		}
		if code, out := endsSoon(t, c.dir, args...); code != cli.CodeRefused || !strings.Contains(out, "FIFO") || !strings.Contains(out, "memctl import -") {
			t.Errorf("--from %q: exit code %d: %s", from, code, out)
		}
	}
}
