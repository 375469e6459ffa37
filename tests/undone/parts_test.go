package undone

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/vfs/crash"
)

// runner makes the commits of a run that is undone in several commits, in a store where each segment has
// 64 KiB. The documents of the run are those of change, for the owner "run".
func runner(ctx context.Context, st *varve.Store, seed uint64, commits, ids int) error {
	rng := rand.New(rand.NewPCG(seed, 7))
	for range commits {
		if err := change(ctx, st, rng, "run", ids); err != nil {
			return err
		}
		id := fmt.Sprintf("run-%d", rng.IntN(ids))
		if _, err := st.Put(ctx, varve.Memory{ID: id, Content: noise(rng, 2000), Embedding: vector(rng)}); err != nil {
			return err
		}
	}
	return nil
}

// noise returns a text that does not compress.
func noise(rng *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		b.WriteByte(byte('a' + rng.IntN(26)))
	}
	return b.String()
}

func onDisk(r *fixture.Rig, seed byte, agent string) *varve.Options {
	o := r.Options(seed)
	o.Writer = &varve.Writer{Program: "test", Agent: agent}
	return o
}

// killed prepares a store on a simulated disk with a run, and returns the documents as they were before.
func killed(t *testing.T) (*fixture.Rig, state, state) {
	t.Helper()
	r := &fixture.Rig{Disk: crash.New(), Clock: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	st, err := varve.Open(t.Context(), "/s", onDisk(r, 1, "keeper"))
	fixture.Must(t, err)
	fixture.Must(t, runner(t.Context(), st, 1, 40, 60))
	for range 3 {
		_, err := st.Put(t.Context(), varve.Memory{ID: "other", Content: "other"})
		fixture.Must(t, err)
	}
	before := stateOf(t, st)
	fixture.Must(t, runner(as(t, "run"), st, 2, 40, 60))
	_, err = st.Put(as(t, "other"), varve.Memory{ID: "other", Content: "by another"})
	fixture.Must(t, err)
	after := stateOf(t, st)
	before["memory other"] = after["memory other"]
	fixture.Must(t, st.Close())
	return r, before, after
}

// An undo in several commits is killed, and the power is cut, at each of its operations; or each fails.
// The same undo continues it, and so does one of the last commit: the result is the same.
func TestUndoCut(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]error{"killed": nil, "full": syscall.ENOSPC} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made, before, after := killed(t)
			prepare := func(t *testing.T) *fixture.Rig { return made.Lose(crash.KeepAll, 1) }
			n := 0
			fixture.CutAtEach(t, prepare, fault, func(r *fixture.Rig) error {
				st, err := varve.Open(context.Background(), "/s", onDisk(r, 2, "keeper"))
				if err != nil {
					return err
				}
				_, err = st.Undo(context.Background(), varve.UndoOptions{Run: "run"})
				return errors.Join(err, st.Close())
			}, func(t *testing.T, r *fixture.Rig, done bool) {
				st, err := varve.Open(t.Context(), "/s", onDisk(r, 3, "keeper"))
				fixture.Must(t, err)
				defer func() { fixture.Must(t, st.Close()) }()
				now := stateOf(t, st)
				if done && len(differences(now, before)) > 0 {
					t.Fatalf("what was acknowledged is lost: %s", differences(now, before)[0])
				}
				begun := len(differences(now, after)) > 0
				o := varve.UndoOptions{Run: "run"}
				if n++; n%2 == 0 && begun && !done {
					o = varve.UndoOptions{} // its last commit is a part, unless it was the last part
				}
				p, err := st.PlanUndo(t.Context(), o)
				fixture.Must(t, err)
				if o.Run == "" && !p.Continues {
					if list := differences(now, before); len(list) > 0 {
						t.Fatalf("an undo that was interrupted is not continued: %s", list[0])
					}
					return // all of it was done
				}
				undo(t, t.Context(), st, o)
				same(t, "continued", st, before)
				// A spill that failed may have left vectors behind the index, which the next one mends.
				fixture.Must(t, st.Admin().Compact(t.Context()))
				healthy(t, st)
			})
			t.Logf("%d cuts", n)
		})
	}
}

// An undo in several commits is one undo: it is undone as a whole, by each position in it, and as the
// last commit of its caller. It has one writer, and only its last commit records that it is complete.
func TestUndoOfParts(t *testing.T) {
	t.Parallel()
	dir := storeIn(t)
	st := fixture.Open(t, dir, options("keeper"))
	fixture.Must(t, runner(t.Context(), st, 1, 40, 60))
	before := stateOf(t, st)
	fixture.Must(t, runner(as(t, "run"), st, 2, 40, 60))
	after := stateOf(t, st)
	p := undo(t, t.Context(), st, varve.UndoOptions{Run: "run"})
	if len(p.Parts) < 3 {
		t.Fatalf("%d commits", len(p.Parts))
	}
	same(t, "undone", st, before)
	var numbers []uint32
	for c, err := range st.Log(t.Context(), varve.LogOptions{}) {
		fixture.Must(t, err)
		if c.Writer.Undo == "" {
			break
		}
		numbers = append(numbers, c.Writer.Number)
	}
	if len(numbers) != len(p.Parts) || numbers[0] != numbers[len(numbers)-1] {
		t.Errorf("commits by %v", numbers)
	}
	for i, o := range []varve.UndoOptions{{Position: p.Parts[0]}, {}, {}, {}} {
		undo(t, t.Context(), st, o)
		if i%2 == 0 {
			same(t, fmt.Sprint("undo ", i), st, after)
		} else {
			same(t, fmt.Sprint("undo ", i), st, before)
		}
	}
	healthy(t, st)
}

// While an undo in several commits is in progress others write documents that it has not reached yet,
// and documents that it has restored: their versions stay, and the rest is undone.
func TestUndoBesideWriters(t *testing.T) {
	t.Parallel()
	const ids = 500
	dir := storeIn(t)
	st, other := fixture.Open(t, dir, options("keeper")), fixture.Open(t, dir, options("other"))
	fixture.Must(t, runner(t.Context(), st, 1, 500, ids))
	before := stateOf(t, st)
	fixture.Must(t, runner(as(t, "run"), st, 2, 500, ids))
	ctx, stop := context.WithCancel(t.Context())
	wrote := map[string]bool{}
	done := make(chan error)
	watched := make(chan struct{})
	go func() {
		rng := rand.New(rand.NewPCG(3, 3))
		close(watched)
		for c, err := range other.Watch(ctx, varve.FromNow) {
			if ctx.Err() != nil {
				done <- nil
				return
			}
			if err != nil || c.Cause != "undo" {
				done <- fmt.Errorf("%+v, %w", c, err)
				return
			}
			break // the undo has begun
		}
		for len(wrote) < 20 && ctx.Err() == nil {
			id := fmt.Sprintf("run-%d", rng.IntN(ids))
			if _, err := other.Put(context.Background(), varve.Memory{ID: id, Content: "by the other"}); err != nil {
				done <- err
				return
			}
			wrote[id] = true
		}
		done <- nil
	}()
	<-watched
	p, err := st.Undo(t.Context(), varve.UndoOptions{Run: "run"})
	stop()
	fixture.Must(t, <-done)
	var conflicts *varve.UndoError
	if err != nil && !errors.As(err, &conflicts) {
		t.Fatal(err)
	}
	if (err != nil) != (len(p.Conflicts) > 0) {
		t.Errorf("%d conflicts, %v", len(p.Conflicts), err)
	}
	left := map[string]bool{}
	for _, c := range p.Conflicts {
		left[c.Kind+" "+c.ID] = true
	}
	for name, doc := range stateOf(t, st) {
		_, id, _ := strings.Cut(name, " ")
		switch {
		case !strings.HasPrefix(name, "memory"):
		case wrote[id] && !strings.Contains(doc, "by the other"):
			t.Errorf("%s of the other was overwritten", name)
		case !wrote[id] && !left[name] && doc != before[name]:
			t.Errorf("%s is not as before", name)
		}
	}
	healthy(t, st)
	t.Logf("%d written, %d of %d changes, %d conflicts, %d commits", len(wrote), p.Done, len(p.Changes), len(p.Conflicts),
		len(p.Parts))
}
