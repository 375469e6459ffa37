//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/upkeep"
)

// startWatch starts memctl watch.
func startWatch(t *testing.T, c *inProcess, args ...string) (wait func() int, out *os.File, interrupt func(), errOut *bytes.Buffer) {
	t.Helper()
	return startWatchTo(t, c, os.Interrupt, args...)
}

// startWatchTo starts it, to be ended by a signal.
func startWatchTo(t *testing.T, c *inProcess, by os.Signal, args ...string) (wait func() int, out *os.File, interrupt func(), errOut *bytes.Buffer) {
	t.Helper()
	cmd := command(t, append([]string{"watch", "--store", c.store()}, args...)...)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	errOut = new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = w, errOut
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); r.Close() })
	return func() int { _ = cmd.Wait(); return cmd.ProcessState.ExitCode() }, r, func() { _ = cmd.Process.Signal(by) }, errOut
}

// Each line comes as soon as its change is committed; SIGINT ends it with 130, and
// says where to go on.
func TestWatchInterrupted(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.ok("put", "one", "--id", "a")
	wait, out, interrupt, errOut := startWatch(t, c, "--since", "0", "--json")
	lines := bufio.NewReader(out)
	var next uint64
	for _, id := range []string{"a", "b", "c"} {
		if id != "a" {
			c.ok("put", "more", "--id", id)
		}
		line, err := lines.ReadBytes('\n')
		var l change
		if jerr := json.Unmarshal(line, &l); err != nil || jerr != nil || l.ID != id || l.Version < next {
			t.Fatalf("%s, %v, %v", line, err, jerr)
		}
		next = l.Next
	}
	interrupt()
	rest, err := io.ReadAll(lines)
	if err != nil {
		t.Fatal(err)
	}
	var d struct{ Error cli.Failure }
	if err := json.Unmarshal(rest, &d); err != nil || d.Error.Kind != "interrupted" || !strings.Contains(d.Error.Fix, "--since") {
		t.Errorf("%s, %v", rest, err)
	}
	if code := wait(); code != cli.CodeInterrupted || errOut.Len() > 0 {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}

// SIGTERM ends it with no more than where to go on, and with -q without a word.
func TestWatchTerminated(t *testing.T) {
	t.Parallel()
	for _, quiet := range []bool{false, true} {
		c := newCLI(t)
		c.ok("put", "one", "--id", "a")
		args := []string{"--since", "0"}
		if quiet {
			args = append(args, "-q")
		}
		wait, out, terminate, errOut := startWatchTo(t, c, syscall.SIGTERM, args...)
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil || !strings.Contains(line, "\ta\t") {
			t.Fatal(line, err)
		}
		terminate()
		code, said := wait(), errOut.String()
		if code != cli.CodeInterrupted || strings.Contains(said, "cancel") || quiet != (said == "") || !quiet && !strings.Contains(said, "memctl watch --since 6") {
			t.Errorf("exit code %d: %s", code, said)
		}
	}
}

// When nobody reads its output any more it ends, and that is no failure.
func TestWatchBrokenPipe(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.ok("put", "one", "--id", "a")
	wait, out, _, errOut := startWatch(t, c, "--since", "0", "--quiet")
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.Contains(line, "\ta\t") {
		t.Fatal(line, err)
	}
	out.Close()
	c.ok("put", "two", "--id", "b")
	if code := wait(); code != cli.CodeOK || errOut.Len() > 0 {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	st, err := varve.Open(t.Context(), c.store(), nil)
	if err != nil || !st.Admin().OpenReport().Clean {
		t.Errorf("it did not close the store: %+v, %v", st.Admin().OpenReport(), err)
	}
	if err := st.Close(); err != nil {
		t.Error(err)
	}
}

// While it runs, what is edited by hand is adopted and shown, and status names it.
func TestWatchEdits(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.ok("put", "one", "--id", "a")
	wait, out, interrupt, _ := startWatch(t, c, "--since", "0", "--json")
	lines := bufio.NewReader(out)
	next := func() (l change) {
		t.Helper()
		line, err := lines.ReadBytes('\n')
		if jerr := json.Unmarshal(line, &l); err != nil || jerr != nil {
			t.Fatalf("%s, %v, %v", line, err, jerr)
		}
		return l
	}
	if l := next(); l.ID != "a" || l.Memory.Content != "one" {
		t.Fatalf("%+v", l)
	}
	path := filepath.Join(c.store(), "memories", "a.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, strings.Replace(string(text), "one", "by hand", 1))
	if l := next(); l.ID != "a" || l.Memory.Content != "by hand" {
		t.Fatalf("%+v", l)
	}
	var s upkeep.State
	for end := time.Now().Add(20 * time.Second); ; { // deleted before it is in its file it would come back with that
		if err := json.Unmarshal([]byte(c.ok("status", "--json")), &s); err != nil || time.Now().After(end) {
			t.Fatalf("not flushed: %+v, %v", s, err)
		}
		if s.Unflushed == 0 {
			break
		}
	}
	if err := json.Unmarshal([]byte(c.ok("status", "--json")), &s); err != nil || s.Watcher == nil || len(s.Processes) != 1 || *s.Watcher != s.Processes[0] {
		t.Errorf("status: %+v, %v", s, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if l := next(); l.ID != "a" || !l.Deleted {
		t.Fatalf("%+v: %+v", l, l.Memory)
	}
	interrupt()
	if code := wait(); code != cli.CodeInterrupted {
		t.Errorf("exit code %d", code)
	}
	if err := json.Unmarshal([]byte(c.ok("status", "--json")), &s); err != nil {
		t.Error(err)
	}
	if out := c.ok("verify"); !strings.Contains(out, "no damage found") {
		t.Error(out)
	}
}
