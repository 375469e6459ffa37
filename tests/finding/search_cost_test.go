package finding

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/fault"
)

// A search after a put examines what was put, not everything that has changed since the index was
// written.
func TestSearchAfterPutReadsLittle(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	ctx := context.Background()
	reads := 0
	fsys := fault.New(vfs.OS(), func(op *fault.Op) error {
		if strings.Contains(op.Path, "wal/0") && !op.Kind.Changes() {
			reads++
		}
		return nil
	})
	st := fixture.Open(t, t.TempDir(), storetest.In(&varve.Options{NoBackground: true},
		storetest.Environment{System: vfs.System{FS: fsys, Inline: true}}))
	const many = 2000
	var b *varve.Batch
	for i := range many {
		if i%500 == 0 {
			b = new(varve.Batch)
		}
		b.Put(varve.Memory{ID: fmt.Sprint("m", i), Content: strings.Repeat("x", 2000), Embedding: []float32{1, float32(i)}})
		if b.Len() == 500 {
			if err := st.Apply(ctx, b); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range 5 {
		if _, err := st.Put(ctx, varve.Memory{ID: "new", Content: "x", Embedding: []float32{2, 1}}); err != nil {
			t.Fatal(err)
		}
		reads = 0
		if hits, err := st.Search(ctx,
			varve.Query{Vector: []float32{2, 1}}); err != nil || len(hits) != 10 || hits[0].ID != "new" {
			t.Fatal(hits, err)
		}
		if n, err := st.Count(ctx); err != nil || n != many+1 {
			t.Fatal(n, err)
		}
		if i > 0 && reads > 50 {
			t.Errorf("a search after a put read the log %d times", reads)
		}
	}
}

// Expired memories take no place among the hits: in the log of this process or of another, before and
// after the index includes them.
func TestSearchExpired(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	clock := fixture.ClockAt(time.Now())
	o := &varve.Options{NoBackground: true, Clock: clock.Now}
	a, b := fixture.Open(t, dir, o), fixture.Open(t, dir, o)
	best := func(what, want string, n int64) {
		t.Helper()
		for _, st := range []*varve.Store{a, b} {
			hits, err := st.Search(ctx, varve.Query{Vector: []float32{1, 0}, Limit: 1})
			if err != nil || len(hits) != 1 || hits[0].ID != want {
				t.Errorf("%s: %q, %v, want %s", what, fixture.IdsOf(hits), err, want)
			}
			if is, err := st.Count(ctx); err != nil || is != n {
				t.Errorf("%s: %d, %v, want %d", what, is, err, n)
			}
		}
	}
	put := func(id string, y float32, ttl time.Duration) {
		t.Helper()
		m := varve.Memory{ID: id, Embedding: []float32{1, y}}
		if ttl != 0 {
			m.ExpiresAt = clock.Now().Add(ttl)
		}
		if _, err := a.Put(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	put("stays", 0.5, 0)
	best("alone", "stays", 1)
	put("hour", 0.1, time.Hour)
	put("last", 0.6, 0)
	best("with a time", "hour", 3)
	clock.Add(2 * time.Hour)
	best("over", "stays", 2)
	if err := a.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	best("over, in the index", "stays", 2)
	put("hour", 0.1, 0)
	best("put again", "hour", 3)
	if err := b.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	best("put again, in the index", "hour", 3)
	put("hour", 0.1, time.Hour)
	best("behind the index", "hour", 3)
	clock.Add(2 * time.Hour)
	best("over behind the index", "stays", 2)
}
