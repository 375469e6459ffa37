package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/tests/forgery"
)

// forged is a store with five memories that nobody has open.
type forged struct {
	t   *testing.T
	dir string
}

var forgedIDs = []string{"m0", "m1", "m2", "m3", "m4"}

func newForged(t *testing.T) *forged {
	t.Helper()
	f := &forged{t: t, dir: filepath.Join(t.TempDir(), "storage")}
	ctx := t.Context()
	st, err := varve.Open(ctx, f.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range forgedIDs {
		if _, err := st.Put(ctx, varve.Memory{ID: id, Content: "memory " + id, Embedding: []float32{float32(i), 1, 2}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestForged: what a stranger signs costs at most what it says itself. Every command ends
// within seconds and says so, the rest of the store goes on, and after a repair verify
// has nothing to say.
func TestForged(t *testing.T) {
	proofs.ManyProcesses(t, "every step is a process")
	t.Parallel()
	for i, c := range forgery.All() {
		// Without VARVE_LONG=1 each in one of the two ways.
		if proofs.Long() || i%2 == 0 {
			t.Run(c.Name, func(t *testing.T) {
				t.Parallel()
				f := newForged(t)
				if err := c.Make(f.dir); err != nil {
					t.Fatal(err)
				}
				f.steps(c)
			})
		}
		if proofs.Long() || i%2 == 1 {
			t.Run("repaired at once/"+c.Name, func(t *testing.T) {
				t.Parallel()
				f := newForged(t)
				if err := c.Make(f.dir); err != nil {
					t.Fatal(err)
				}
				f.run([]int{cli.CodeOK, cli.CodeDamage, cli.CodeLost}, "repair", "--apply")
				f.run([]int{cli.CodeOK}, "verify")
				f.lists()
			})
		}
	}
}

// TestRestoreBesideForged: an entry that the store has not taken in does not keep it from
// being restored to a moment.
func TestRestoreBesideForged(t *testing.T) {
	proofs.ManyProcesses(t, "every step is a process")
	t.Parallel()
	f := newForged(t)
	saved, restored := f.dir+".saved", f.dir+".restored"
	f.run([]int{cli.CodeOK}, "backup", saved)
	for _, c := range forgery.All() {
		if c.Name == "line: wrong size" || c.Name == "key: a model that is none" {
			if err := c.Make(f.dir); err != nil {
				t.Fatal(err)
			}
		}
	}
	f.run([]int{cli.CodeOK}, "put", "put after the forgery", "--id", "after")
	f.run([]int{cli.CodeOK}, "restore", saved, restored, "--log", f.dir)
	f.dir = restored
	f.run([]int{cli.CodeOK}, "verify")
	f.lists("after")
}

func (f *forged) steps(c forgery.Forgery) {
	found := c.Codes
	if found == nil {
		found = []int{cli.CodeDamage, cli.CodeLost}
	}
	f.run(found, "verify")
	f.run([]int{cli.CodeOK, cli.CodeDamage, cli.CodeLost}, "status")
	f.lists()
	for _, id := range forgedIDs {
		f.run([]int{cli.CodeOK}, "get", id)
	}
	written, after := []int{cli.CodeOK}, []string{"after"}
	if c.Lost {
		written, after = []int{cli.CodeLost}, nil
	}
	f.run(written, "put", "put after the forgery", "--id", "after")
	f.run(written, "flush")
	f.run(written, "put", "put over it", "--id", "m1")
	f.run([]int{cli.CodeOK, cli.CodeLost, cli.CodeNotFound}, "history", "x")
	f.run([]int{cli.CodeOK, cli.CodeDamage, cli.CodeLost}, "verify")
	f.lists(after...)
	f.run([]int{cli.CodeOK, cli.CodeDamage, cli.CodeLost}, "repair")
	f.run([]int{cli.CodeOK, cli.CodeDamage, cli.CodeLost}, "repair", "--apply")
	f.run([]int{cli.CodeOK}, "verify")
	f.lists(after...)
	f.run([]int{cli.CodeOK}, "put", "put after the repair", "--id", "repaired")
	f.run([]int{cli.CodeOK}, "verify")
	f.lists(append(after, "repaired")...)
}

// lists wants the memories that were put in the list, whatever else is there.
func (f *forged) lists(more ...string) {
	f.t.Helper()
	out := f.run([]int{cli.CodeOK, cli.CodeLost}, "list", "--limit", "0", "--json")
	var d struct{ Memories []struct{ ID string } }
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		f.t.Errorf("list: %v: %.500s", err, out)
	}
	for _, id := range append(more, forgedIDs...) {
		if !slices.ContainsFunc(d.Memories, func(m struct{ ID string }) bool { return m.ID == id }) {
			f.t.Errorf("list has no %s: %.500s", id, out)
		}
	}
}

// forgedWait is the time that a command has; on a free machine it needs milliseconds.
const forgedWait = 8 * time.Second

// run runs memctl as a process and returns what it says.
func (f *forged) run(codes []int, args ...string) string {
	f.t.Helper()
	path, err := exec.LookPath("memctl")
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(f.t.Context(), forgedWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append(args, "--store", f.dir)...)
	cmd.Env = append(os.Environ(), "VARVE_STORE=", "GOMEMLIMIT=off")
	cmd.Cancel = func() error { // so that it says where it was
		if cmd.Process.Signal(syscall.SIGQUIT) != nil {
			return cmd.Process.Kill()
		}
		return nil
	}
	cmd.WaitDelay = 5 * time.Second
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err = cmd.Run()
	if ctx.Err() != nil {
		f.t.Fatalf("memctl %q did not end within %s: %.3000s", args, forgedWait, errOut.String())
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		f.t.Fatal(err)
	}
	code := cmd.ProcessState.ExitCode()
	if strings.Contains(errOut.String(), "goroutine ") {
		f.t.Fatalf("memctl %q: %.1500s", args, errOut.String())
	}
	if !slices.Contains(codes, code) {
		f.t.Errorf("%s: memctl %q: exit code %d, want one of %d\n%.1500s%.1500s", f.t.Name(), args, code, codes, errOut.String(), out.String())
	}
	return out.String()
}
