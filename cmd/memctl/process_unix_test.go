//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/intake"
	"github.com/varve-db/varve/cmd/memctl/internal/upkeep"
)

// command is memctl as a process of its own; see TestMain.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath("memctl")
	if err != nil {
		t.Fatal(err)
	}
	return exec.Command(path, args...)
}

// TestInterrupted: SIGINT while it waits for input ends it with 130, and
// nothing is written.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	pipe := filepath.Join(c.dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"put", "--file", pipe},
		{"put", "--json-input", pipe},
		{"put", "x", "--embedding", pipe},
	} {
		cmd := command(t, append(args, "--store", c.store(), "--json")...)
		var out bytes.Buffer
		cmd.Stdout = &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// This returns when the command has opened the other end.
		w, err := os.OpenFile(pipe, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(w, `{"id":"half`)
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		err = cmd.Wait()
		w.Close()
		if got := cmd.ProcessState.ExitCode(); got != cli.CodeInterrupted {
			t.Errorf("%q: exit code %d (%v), want %d", args, got, err, cli.CodeInterrupted)
		}
		var d struct{ Error cli.Failure }
		if err := json.Unmarshal(out.Bytes(), &d); err != nil || d.Error.Kind != "interrupted" {
			t.Errorf("%q: %v: %s", args, err, out.String())
		}
	}
	if ids := c.ids(); len(ids) != 0 {
		t.Errorf("stored: %q", ids)
	}
}

// TestImportInterrupted: what came before stays, whole.
func TestImportInterrupted(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	cmd := command(t, "import", "-", "--store", c.store(), "--json")
	var out bytes.Buffer
	cmd.Stdout = &out
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// More than a pipe and a chunk hold: when it is written, some was taken.
	const n = 3 * intake.ChunkItems
	for i := range n {
		fmt.Fprintf(in, `{"id":"m%05d","content":%q}`+"\n", i, strings.Repeat("x", 1000))
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != cli.CodeInterrupted {
		t.Errorf("exit code %d, want %d: %s", got, cli.CodeInterrupted, out.String())
	}
	var d struct{ New int }
	if err := json.Unmarshal(out.Bytes(), &d); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	if ids := c.ids(); len(ids) != d.New || d.New < intake.ChunkItems {
		t.Errorf("%d memories, the report says %d", len(ids), d.New)
	}
}

// TestExportInterrupted: a part of an export never has the name of the whole, and the exit status says that it was
// interrupted.
func TestExportInterrupted(t *testing.T) {
	t.Parallel()
	const n = 20_000
	dir := t.TempDir()
	store, out := filepath.Join(dir, "s"), filepath.Join(dir, "out", "all.jsonl")
	if err := os.Mkdir(filepath.Dir(out), 0o755); err != nil {
		t.Fatal(err)
	}
	st, err := varve.Open(t.Context(), store, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = st.PutAll(t.Context(), func(yield func(varve.Memory) bool) {
		for i := range n {
			if !yield(varve.Memory{ID: fmt.Sprintf("m%05d", i), Content: "one"}) {
				return
			}
		}
	})
	if err := errors.Join(err, st.Close()); err != nil {
		t.Fatal(err)
	}
	for range 20 { // it may have ended before the signal
		cmd := command(t, "export", "--file", out, "--store", store)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }()
		for begun := false; !begun; {
			select {
			case <-ended:
				begun = true
			default:
				list, err := os.ReadDir(filepath.Dir(out))
				if err != nil {
					t.Fatal(err)
				}
				begun = len(list) > 0
			}
		}
		_ = cmd.Process.Signal(os.Interrupt)
		<-ended
		list, err := filepath.Glob(filepath.Dir(out) + "/*")
		switch code := cmd.ProcessState.ExitCode(); {
		case code == cli.CodeInterrupted && len(list) == 0 && err == nil:
			return
		case code != 0 || len(list) != 1 || list[0] != out:
			t.Fatalf("exit status %d, files %q, %v", code, list, err)
		}
		whole, err := os.ReadFile(out)
		if lines := bytes.Count(whole, []byte("\n")); err != nil || lines != n {
			t.Fatalf("exit status 0 with %d of %d lines, %v", lines, n, err)
		}
		if err := os.Remove(out); err != nil {
			t.Fatal(err)
		}
	}
	t.Error("no export was interrupted")
}

// TestSecondProcess: while another process has the store open, everything works
// and status names it.
func TestSecondProcess(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	st, err := varve.Open(t.Context(), c.store(), &varve.Options{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if _, err := st.Put(t.Context(), varve.Memory{ID: "ours", Content: "not flushed"}); err != nil {
		t.Fatal(err)
	}
	memctl := func(args ...string) string {
		t.Helper()
		cmd := command(t, append(args, "--store", c.store())...)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("memctl %q: %v", args, err)
		}
		return string(out)
	}
	if out := memctl("get", "ours", "--content"); out != "not flushed" {
		t.Errorf("get: %q", out)
	}
	memctl("put", "of the other process", "--id", "theirs")
	if m, err := st.Get(t.Context(), "theirs"); err != nil || m.Content != "of the other process" {
		t.Errorf("%v, %v", m.Content, err)
	}
	var s upkeep.State
	if err := json.Unmarshal([]byte(memctl("status", "--json")), &s); err != nil {
		t.Fatal(err)
	}
	if s.Memories != 2 || len(s.Processes) != 1 || s.Processes[0] != os.Getpid() {
		t.Errorf("status: %+v", s)
	}
	if out := memctl("verify", "--json"); !strings.Contains(out, `"findings":[]`) {
		t.Errorf("verify: %s", out)
	}
}

// unprivileged copies the program to where everybody may run it, and runs it as
// somebody who is not root: root may do everything.
func unprivileged(t *testing.T, dir string) func(args ...string) (int, string) {
	t.Helper()
	path, err := exec.LookPath("memctl")
	if err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		// Copied by another process: one that a parallel test starts would inherit the open file of a
		// copy made here, and what is open to be written cannot be started.
		to := filepath.Join(dir, "memctl")
		if out, err := exec.Command("cp", path, to).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if path = to; os.Chmod(path, 0o755) != nil {
			t.Fatal("no mode for", path)
		}
	}
	return func(args ...string) (int, string) {
		t.Helper()
		cmd := exec.Command(path, args...)
		cmd.Dir = dir
		if os.Getuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534, NoSetGroups: true}}
		}
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), string(out)
	}
}

// writing are the commands that write somewhere without waiting for the locks of writers.
var writing = []string{"edit", "note append", "note release", "project merge", "config set", "config unset", "reindex", "migrate",
	"remote add", "remote follow"}

// TestPermission: a store that may be read and not written is read (TestReadOnlyMedium backs it up);
// all else says path, mode, owner and remedy.
func TestPermission(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "memctl-permission-")
	if err != nil {
		t.Fatal(err)
	}
	mode := func(to os.FileMode, path string) {
		t.Helper()
		if err := os.Chmod(path, to); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, _ error) error { return os.Chmod(path, 0o700) })
		_ = os.RemoveAll(dir)
	})
	c := &inProcess{t, dir}
	words := storeOfCases(t, dir)
	c.ok("put", "may be read", "--id", "a", "--session", "s")
	for _, path := range tree(t, c.store()) {
		path = filepath.Join(c.store(), path)
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			mode(0o555, path)
		} else {
			mode(0o444, path)
		}
	}
	memctl := unprivileged(t, dir)
	mode(0o755, dir)
	before := quoted(t, tree(t, c.store()))
	if code, out := memctl("--store", "storage", "get", "a", "--content"); code != cli.CodeOK || out != "may be read" {
		t.Errorf("get: %d, %q", code, out)
	}
	mode(0o644, filepath.Join(dir, "lines.jsonl"))
	except := slices.Concat(storeless, []string{"mcp", "serve", "ui", "watch", "backup", "note export",
		"remote status", "remote verify", "remote snapshots", "remote remove"})
	eachCommand(t, dir, words, except, "storeless", func(name string, cmd commandCase, args []string) {
		code, out := memctl(append(args, "--store", c.store())...)
		switch {
		case cmd.writes || slices.Contains(writing, name):
			if code != cli.CodePermission || !strings.Contains(out, "mode") || !strings.Contains(out, "user") || !strings.Contains(out, c.base()) {
				t.Errorf("%q: exit code %d, want %d: %s", args, code, cli.CodePermission, out)
			}
		case code != cli.CodeOK:
			t.Errorf("%q: exit code %d: %s (if it writes, it belongs in writing)", args, code, out)
		}
	})
	if code, out := memctl("init", "new/store"); code != cli.CodePermission && os.Getuid() == 0 {
		t.Errorf("init: exit code %d: %s", code, out)
	}
	if after := quoted(t, tree(t, c.store())); after != before {
		t.Errorf("the tree has changed:\n%s\n%s", before, after)
	}
	// Not readable either.
	mode(0o000, filepath.Join(c.store(), "memories", "a.json"))
	mode(0o000, filepath.Join(c.store(), "config.json"))
	if code, out := memctl("--store", "storage", "get", "a"); code != cli.CodePermission || !strings.Contains(out, "config.json") {
		t.Errorf("get: exit code %d, want %d: %s", code, cli.CodePermission, out)
	}
}

func (c *inProcess) base() string { return filepath.Base(c.store()) }

// TestKilledProcess: one that was killed while others have the store open is not
// named among those that have it open.
func TestKilledProcess(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	st, err := varve.Open(t.Context(), c.store(), &varve.Options{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	cmd := command(t, "import", "-", "--store", c.store())
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for i := range 3 * intake.ChunkItems { // when it is written, the store is open
		fmt.Fprintf(in, `{"id":"m%05d","content":%q}`+"\n", i, strings.Repeat("x", 1000))
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	status := command(t, "status", "--json", "--store", c.store())
	out, err := status.Output()
	if err != nil {
		t.Fatal(err)
	}
	var s upkeep.State
	if err := json.Unmarshal(out, &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Processes) != 1 || s.Processes[0] != os.Getpid() || len(s.Unseen) != 0 && runtime.GOOS == "linux" {
		t.Errorf("open in %v, unseen %v; it is open in %d, %d was killed", s.Processes, s.Unseen, os.Getpid(), cmd.Process.Pid)
	}
}
