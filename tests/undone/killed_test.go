package undone

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
)

// writing writes documents of its own, and prints each, until it is killed.
func writing(ctx context.Context, arg, dir string) error {
	st, err := varve.Open(ctx, dir, options("other"))
	if err != nil {
		return err
	}
	for i := range 60 {
		m, err := st.Put(ctx, varve.Memory{ID: fmt.Sprintf("%s-%d", arg, i), Content: fmt.Sprint(i)})
		if err != nil {
			return err
		}
		fmt.Println(m.ID, m.Content)
	}
	select {}
}

// undoing undoes a run.
func undoing(ctx context.Context, arg, dir string) error {
	st, err := varve.Open(ctx, dir, options("keeper"))
	if err != nil {
		return err
	}
	_, err = st.Undo(ctx, varve.UndoOptions{Run: arg})
	return errors.Join(err, st.Close())
}

// memctl undo is killed again and again, at another moment each time, until it completes; others write
// and are killed meanwhile. Then all of the run is undone, and nothing of the others has changed.
func TestUndoKilled(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("VARVE_LONG=1 has no SIGKILL on Windows")
	}
	ids := scale(150, 500)
	dir := storeIn(t)
	memctl := ""
	if proofs.Long() {
		memctl = filepath.Join(t.TempDir(), "memctl")
		if out, err := exec.Command("go", "build", "-o", memctl, "../../cmd/memctl").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	st := fixture.Open(t, dir, options("keeper"))
	fixture.Must(t, runner(t.Context(), st, 1, ids, ids))
	before := stateOf(t, st)
	fixture.Must(t, runner(as(t, "run"), st, 2, ids, ids))
	after := stateOf(t, st)
	began := time.Now()
	undo := func(wait time.Duration) bool {
		var cmd *exec.Cmd
		if memctl != "" {
			cmd = exec.Command(memctl, "undo", "--run", "run", "--yes", "--store", dir)
			cmd.Stderr = os.Stderr
			fixture.Must(t, cmd.Start())
		} else {
			cmd, _ = storetest.Start(t, "undoing:run", dir)
		}
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		if wait == 0 {
			fixture.Must(t, <-done)
			return true
		}
		select {
		case err := <-done:
			fixture.Must(t, err)
			return true
		case <-time.After(wait):
		}
		_ = cmd.Process.Kill()
		return <-done == nil
	}
	kills, begun := 0, 0
	wrote := map[string]string{}
	for wait := 2 * time.Millisecond; ; wait += wait/8 + time.Millisecond {
		other, out := storetest.Start(t, "writing:other", dir)
		for range 20 {
			var id, content string
			if line, err := out.ReadString('\n'); err != nil {
				t.Fatal(err)
			} else if _, err := fmt.Sscan(line, &id, &content); err != nil {
				t.Fatal(err)
			}
			wrote[id] = content
		}
		done := undo(wait)
		_ = other.Process.Kill()
		for { // what it has said since
			var id, content string
			line, err := out.ReadString('\n')
			if err != nil {
				break
			}
			if _, err := fmt.Sscan(line, &id, &content); err == nil {
				wrote[id] = content
			}
		}
		_ = other.Wait()
		if done || time.Since(began) > time.Minute {
			break
		}
		kills++
		if len(differences(ofRun(stateOf(t, st)), after)) > 0 {
			begun++
		}
	}
	undo(0)
	for id, content := range wrote {
		if m, err := st.Get(t.Context(), id); err != nil || m.Content != content {
			t.Errorf("%s of the other is %q, %v, want %q", id, m.Content, err, content)
		}
	}
	if list := differences(ofRun(stateOf(t, st)), before); len(list) > 0 {
		t.Errorf("%d differences: %s", len(list), list[0])
	}
	t.Logf("%d kills, %d of them within the undo", kills, begun)
	healthy(t, st)
}
