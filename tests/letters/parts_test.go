package letters

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/adopt"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/view"
	"github.com/varve-db/varve/internal/views"
	"github.com/varve-db/varve/wal"
)

// counting counts the entries that a view is given.
type counting struct {
	view.View
	all, now, most *atomic.Int64 // all entries; those since the last Save; and the most that one Save had
}

func (c counting) Apply(ctx context.Context, set *index.Set, e *wal.Entry) error {
	c.all.Add(1)
	c.now.Add(1)
	return c.View.Apply(ctx, set, e)
}

func (c counting) Save(ctx context.Context, f *view.Folder, at wal.Mark) error {
	c.most.Store(max(c.most.Load(), c.now.Swap(0)))
	return c.View.Save(ctx, f, at)
}

// TestPartsBesideWatcher verifies that a background round updates a view for a limited number of changes while another
// handle of the store watches the files, and that the next rounds update it for the others at once.
func TestPartsBesideWatcher(t *testing.T) {
	const n = 12_000
	dir := t.TempDir()
	var all, now, most atomic.Int64
	open := func(o *varve.Options, e storetest.Environment) *varve.Store {
		t.Helper()
		st, err := varve.Open(t.Context(), dir, storetest.In(o, e))
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	watcher := open(&varve.Options{NoBackground: true}, storetest.Environment{})
	defer watcher.Close()
	release, err := adopt.NewFiles(storetest.Inner(watcher).Adopter).Lead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	st := open(&varve.Options{}, storetest.Environment{System: vfs.System{SpillBytes: 4 << 10},
		Views: []views.Maker{func(eng *engine.Engine) view.View { return counting{New(eng), &all, &now, &most} }}})
	defer st.Close()
	put(t, st, "first")
	flush(t, st) // the view has files
	held, err := storetest.Inner(watcher).Engine.Log().LockFlush(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := all.Load()
	for i := 0; i < n; i += 1000 {
		list := make([]varve.Memory, 1000)
		for j := range list {
			list[j] = varve.Memory{ID: fmt.Sprint("m", i+j), Content: "x"}
		}
		if _, err := st.PutAll(t.Context(), slices.Values(list)); err != nil {
			t.Fatal(err)
		}
	}
	held.Unlock()
	for until := time.Now().Add(time.Minute); all.Load() < before+n; {
		if time.Now().After(until) {
			t.Fatalf("the view has %d of %d entries", all.Load()-before, n)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if most.Load() > 5000 {
		t.Errorf("a hold of flush.lock had %d entries for the view, want at most 5,000", most.Load())
	}
}
