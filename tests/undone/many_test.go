package undone

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// Many commits of a run are undone by one call, while others write; the deleted documents are listed
// without knowing their ids.
func TestUndoMany(t *testing.T) {
	t.Parallel()
	commits := scale(2_000, 100_000)
	ids := commits / 10
	o := options("keeper")
	o.SegmentSize = 0
	dir := storeIn(t)
	st, other := fixture.Open(t, dir, o), fixture.Open(t, dir, o)
	b := new(varve.Batch)
	for i := range ids {
		if b.Put(varve.Memory{ID: fmt.Sprint("run-", i), Content: fmt.Sprint(i)}); b.Len() == 1000 || i == ids-1 {
			fixture.Must(t, st.Apply(t.Context(), b))
			b = new(varve.Batch)
		}
	}
	before := stateOf(t, st)
	run := fixture.Open(t, dir, func() *varve.Options {
		o := *o
		o.Writer = &varve.Writer{Program: "test", Agent: "run"}
		return &o
	}())
	var pending []*varve.Pending
	for i := range commits {
		if i%10 == 9 {
			for _, p := range pending {
				_, err := p.Wait(t.Context())
				fixture.Must(t, err)
			}
			pending = pending[:0]
			fixture.Must(t, run.Delete(t.Context(), fmt.Sprint("run-", i/10)))
			continue
		}
		m := varve.Memory{ID: fmt.Sprint("run-", (i+i/7)%ids), Content: fmt.Sprint("bad ", i)}
		pending = append(pending, run.PutAsync(m))
	}
	for _, p := range pending {
		_, err := p.Wait(t.Context())
		fixture.Must(t, err)
	}
	deleted := 0
	for c, err := range st.Log(t.Context(), varve.LogOptions{By: "run", Deleted: true}) {
		fixture.Must(t, err)
		deleted += len(c.Changes)
	}
	if deleted != commits/10 {
		t.Errorf("%d deletions are listed, want %d", deleted, commits/10)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		for n := 0; ; n++ {
			m := varve.Memory{ID: fmt.Sprint("other-", n%100), Content: fmt.Sprint(n)}
			if _, err := other.Put(context.Background(), m); err != nil || ctx.Err() != nil {
				done <- err
				return
			}
		}
	}()
	began := time.Now()
	p := undo(t, t.Context(), st, varve.UndoOptions{Run: "run"})
	took := time.Since(began)
	stop()
	fixture.Must(t, <-done)
	if list := differences(ofRun(stateOf(t, st)), before); len(list) > 0 {
		t.Fatalf("%d differences: %s", len(list), list[0])
	}
	t.Logf("%d commits, %d changes in %d commits, in %v", p.Commits, p.Done, len(p.Parts), took)
}
