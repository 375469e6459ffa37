//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/varve-db/varve"
)

// startWatch starts memctl watch.
func startWatch(t *testing.T, c *cli, args ...string) (wait func() int, out *os.File, interrupt func(), errOut *bytes.Buffer) {
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
	return func() int { _ = cmd.Wait(); return cmd.ProcessState.ExitCode() }, r, func() { _ = cmd.Process.Signal(os.Interrupt) }, errOut
}

// Each line comes as soon as its change is committed; SIGINT ends it with 130, and
// says where to go on.
func TestWatchInterrupted(t *testing.T) {
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
	var d struct{ Error failure }
	if err := json.Unmarshal(rest, &d); err != nil || d.Error.Kind != "interrupted" || !strings.Contains(d.Error.Fix, "--since") {
		t.Errorf("%s, %v", rest, err)
	}
	if code := wait(); code != codeInterrupted || errOut.Len() > 0 {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}

// When nobody reads its output any more it ends, and that is no failure.
func TestWatchBrokenPipe(t *testing.T) {
	c := newCLI(t)
	c.ok("put", "one", "--id", "a")
	wait, out, _, errOut := startWatch(t, c, "--since", "0", "--quiet")
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.Contains(line, "\ta\t") {
		t.Fatal(line, err)
	}
	out.Close()
	c.ok("put", "two", "--id", "b")
	if code := wait(); code != codeOK || errOut.Len() > 0 {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	st, err := varve.Open(t.Context(), c.store(), nil)
	if err != nil || !st.OpenReport().Clean {
		t.Errorf("it did not close the store: %+v, %v", st.OpenReport(), err)
	}
	if err := st.Close(); err != nil {
		t.Error(err)
	}
}
