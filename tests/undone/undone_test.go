package undone

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
)

// Random commits are undone one by one, the newest first, and then the undos, the oldest undo last: each
// time every document has the bytes that it had at that time.
func TestUndoEachCommit(t *testing.T) {
	t.Parallel()
	for seed := range uint64(scale(4, 60)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 1))
			dir := storeIn(t)
			st := fixture.Open(t, dir, options("a"))
			type step struct {
				at    uint64
				state state
			}
			steps := []step{{0, state{}}}
			for len(steps) < 40 {
				fixture.Must(t, change(t.Context(), st, rng, "a", 12))
				if at := newest(t, st); at != steps[len(steps)-1].at {
					steps = append(steps, step{at, stateOf(t, st)})
				}
				if rng.IntN(10) == 0 {
					fixture.Must(t, st.Admin().Compact(t.Context()))
				}
			}
			var undone []uint64
			for i := len(steps) - 1; i > 0; i-- {
				p := undo(t, t.Context(), st, varve.UndoOptions{Position: steps[i].at})
				if p.Commits != 1 {
					t.Fatalf("%d commits", p.Commits)
				}
				if len(p.Parts) > 0 {
					undone = append(undone, p.Parts[0])
				} else {
					undone = append(undone, 0)
				}
				same(t, fmt.Sprint("without step ", i), st, steps[i-1].state)
			}
			healthy(t, st)
			for i := 1; i < len(steps); i++ {
				if at := undone[len(undone)-i]; at != 0 {
					undo(t, t.Context(), st, varve.UndoOptions{Position: at})
				}
				same(t, fmt.Sprint("again with step ", i), st, steps[i].state)
			}
			healthy(t, st)
		})
	}
}

// Runs to be undone, beside other writers, are each undone by one call.
func TestUndoRuns(t *testing.T) {
	t.Parallel()
	memories, runs, commits := 300, scale(6, 100), 40
	if proofs.Long() {
		memories = 10_000
	}
	dir := storeIn(t)
	st := fixture.Open(t, dir, options("keeper"))
	other := fixture.Open(t, dir, options("other"))
	rng := rand.New(rand.NewPCG(1, 2))
	b := new(varve.Batch)
	for i := range memories {
		b.Put(varve.Memory{ID: fmt.Sprintf("run-%d", i), Content: fmt.Sprint(i), Embedding: vector(rng)})
		b.Put(varve.Memory{ID: fmt.Sprintf("other-%d", i), Content: fmt.Sprint(i)})
		if b.Len() >= 20 {
			fixture.Must(t, st.Apply(t.Context(), b))
			b = new(varve.Batch)
		}
	}
	fixture.Must(t, st.Apply(t.Context(), b))
	for run := range runs {
		name := fmt.Sprint("run", run)
		before := ofRun(stateOf(t, st))
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		var failed error
		wrote := map[string]string{} // the newest of each document of the other writer
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(run), 3))
			for ctx.Err() == nil && failed == nil {
				m, err := other.Put(context.Background(), varve.Memory{ID: fmt.Sprintf("other-%d", rng.IntN(memories)),
					Content: fmt.Sprint("other ", rng.Int())})
				if failed = err; err == nil {
					wrote[m.ID] = m.Content
				}
			}
		})
		for range commits {
			fixture.Must(t, change(as(t, name), st, rng, "run", memories))
		}
		p := undo(t, t.Context(), st, varve.UndoOptions{Run: name})
		stop()
		wg.Wait()
		fixture.Must(t, failed)
		if p.Commits == 0 || len(p.Conflicts) > 0 {
			t.Fatalf("%s: %d commits, %d conflicts", name, p.Commits, len(p.Conflicts))
		}
		if list := differences(ofRun(stateOf(t, st)), before); len(list) > 0 {
			t.Fatalf("%s: %d differences: %s", name, len(list), list[0])
		}
		for id, content := range wrote {
			if m, err := st.Get(t.Context(), id); err != nil || m.Content != content {
				t.Fatalf("%s: %s of the other writer: %q, %v, want %q", name, id, m.Content, err, content)
			}
		}
		if run%10 == 0 {
			fixture.Must(t, st.Admin().Compact(t.Context()))
		}
	}
	healthy(t, st)
}

// Documents on which others have built are refused, with the whole plan, and skipped on request.
func TestUndoConflicts(t *testing.T) {
	t.Parallel()
	st := fixture.Open(t, storeIn(t), options("keeper"))
	ctx, run, other := t.Context(), as(t, "run"), as(t, "other")
	put := func(ctx context.Context, id, content string) {
		t.Helper()
		_, err := st.Put(ctx, varve.Memory{ID: id, Content: content, Embedding: []float32{float32(len(content)), 1}})
		fixture.Must(t, err)
	}
	group := func(ctx context.Context, id string, members ...string) {
		t.Helper()
		_, err := st.Assemblies().Put(ctx, varve.Assembly{ID: id, Name: id, MemoryIDs: members})
		fixture.Must(t, err)
	}
	for _, id := range []string{"kept", "changed", "deleted", "between", "moved", "gone", "anchor"} {
		put(ctx, id, "before")
	}
	group(ctx, "with gone", "anchor", "gone")
	before := stateOf(t, st)
	for _, id := range []string{"kept", "changed", "deleted", "between", "new", "member", "own"} {
		put(run, id, "by the run")
	}
	put(run, "moved", "moved by the run")
	_, err := st.Assemblies().Remove(run, "with gone", []string{"gone"})
	fixture.Must(t, err)
	put(other, "changed", "by the other")
	fixture.Must(t, st.Delete(other, "deleted"))
	put(other, "between", "between two")
	between := stateOf(t, st)["memory between"]
	put(run, "between", "by the run again")
	group(other, "of others", "member", "moved")
	fixture.Must(t, st.Delete(other, "gone"))
	fixture.Must(t, st.Delete(run, "own"))

	o := varve.UndoOptions{Run: "run"}
	plan, err := st.PlanUndo(ctx, o)
	fixture.Must(t, err)
	was := stateOf(t, st)
	_, err = st.Undo(ctx, o)
	var refused *varve.UndoError
	if !errors.As(err, &refused) || !errors.Is(err, varve.ErrConflict) {
		t.Fatalf("undo: %v", err)
	}
	same(t, "refused", st, was)
	ids := func(list []varve.UndoConflict) (ids []string) {
		for _, c := range list {
			if !errors.Is(c.Err, varve.ErrBuiltUpon) {
				t.Errorf("%s: %v", c.ID, c.Err)
			}
			ids = append(ids, c.ID)
		}
		return ids
	}
	want := []string{"with gone", "between", "changed", "deleted", "member", "moved"}
	for _, p := range []*varve.UndoPlan{plan, &refused.Plan} {
		if got := ids(p.Conflicts); !slices.Equal(got, want) {
			t.Errorf("conflicts of %v, want %v", got, want)
		}
	}
	for _, c := range plan.Conflicts {
		if c.ID == "changed" && (c.Writer.Agent != "other" || c.Version == 0) {
			t.Errorf("%s: version %d by %q", c.ID, c.Version, c.Writer.Agent)
		}
	}
	o.Partial = true
	undo(t, ctx, st, o)
	after := was
	after["memory kept"], after["memory between"] = before["memory kept"], between
	delete(after, "memory new")
	same(t, "in part", st, after)
	healthy(t, st)
	// A change that was undone is not undone again.
	if p := undo(t, ctx, st, o); len(p.Changes) > 0 {
		t.Errorf("%+v", p.Changes)
	}
}

// The last commit of the caller is that of the same program for the same agent, in any process, not that
// of another one and not of the store itself.
func TestUndoLast(t *testing.T) {
	t.Parallel()
	dir := storeIn(t)
	ctx := t.Context()
	open := func(program, agent string) *varve.Store {
		o := options(agent)
		o.Writer.Program = program
		st, err := varve.Open(ctx, dir, o)
		fixture.Must(t, err)
		return st
	}
	put := func(program, agent, id string) {
		st := open(program, agent)
		_, err := st.Put(ctx, varve.Memory{ID: id, Content: id})
		fixture.Must(t, err)
		fixture.Must(t, st.Touch(ctx, id))
		fixture.Must(t, st.Close())
	}
	put("tool put", "", "a")
	put("tool put", "agent", "b")
	put("other", "", "c")
	st := open("tool undo", "")
	p := undo(t, ctx, st, varve.UndoOptions{})
	if len(p.Changes) != 1 || p.Changes[0].ID != "a" || p.Changes[0].What != varve.UndoDelete {
		t.Fatalf("%+v", p.Changes)
	}
	p = undo(t, ctx, st, varve.UndoOptions{}) // its last commit is the undo
	if len(p.Changes) != 1 || p.Changes[0].ID != "a" || p.Changes[0].What != varve.UndoUndelete {
		t.Fatalf("%+v", p.Changes)
	}
	fixture.Must(t, st.Close())
	st = open("nobody", "")
	if _, err := st.Undo(ctx, varve.UndoOptions{}); !errors.Is(err, varve.ErrNotFound) {
		t.Errorf("without a commit: %v", err)
	}
	fixture.Must(t, st.Close())
	none := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	if _, err := none.Undo(ctx, varve.UndoOptions{}); !errors.Is(err, varve.ErrInvalid) {
		t.Errorf("without a writer: %v", err)
	}
	for _, o := range []varve.UndoOptions{{Run: "unheard"}, {Position: 8}, {Position: 1 << 40}} {
		if _, err := none.Undo(ctx, o); !errors.Is(err, varve.ErrNotFound) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := none.Undo(ctx, varve.UndoOptions{Position: p.First, Run: "b"}); !errors.Is(err, varve.ErrInvalid) {
		t.Errorf("both: %v", err)
	}
}
