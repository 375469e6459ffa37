package finding

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// boats makes a store of memories that are all alike, with a time to live or, 0, without. An hour passes
// at a certain call of the clock.
func boats(t *testing.T, live map[string]time.Duration) (st *varve.Store, looks, jump *atomic.Int64) {
	t.Helper()
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	looks, jump = new(atomic.Int64), new(atomic.Int64)
	st = fixture.Open(t, t.TempDir(), &varve.Options{NoBackground: true, Clock: func() time.Time {
		if n := looks.Add(1); n > jump.Load() {
			return begin.Add(time.Hour)
		}
		return begin
	}})
	jump.Store(1 << 40)
	for id, ttl := range live {
		m := varve.Memory{ID: id, Content: "a boat on the lake", Embedding: []float32{1, 2, 3}}
		if ttl > 0 {
			m.ExpiresAt = begin.Add(ttl)
		}
		_, err := st.Put(t.Context(), m)
		fixture.Must(t, err)
	}
	return st, looks, jump
}

// A memory that expires while a search ranks it leaves its place to the next one.
func TestSearchOfWhatExpires(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st, looks, jump := boats(t, map[string]time.Duration{"a": time.Minute, "b": 0, "c": 24 * time.Hour})
	for name, q := range map[string]varve.Query{
		"vector": {Vector: []float32{1, 2, 3}, Limit: 1, MinScore: 0.99}, "words": {Text: "boat lake", Limit: 1},
		"both": {Vector: []float32{1, 2, 3}, Text: "boat", Limit: 1}, "two": {Text: "boat", Limit: 2},
		"offset": {Text: "boat", Limit: 1, Offset: 1},
	} {
		found := map[string]bool{}
		for at := int64(0); ; at++ {
			looks.Store(0)
			jump.Store(at)
			hits, err := st.Search(ctx, q)
			if err != nil || len(hits) != q.Limit {
				t.Errorf("%s: from look %d at the clock on: %d hits, %v", name, at, len(hits), err)
			}
			for _, h := range hits {
				found[h.ID] = true
			}
			if looks.Load() < at {
				break // it was over before
			}
		}
		if q.Offset == 0 && (!found["a"] || !found["b"]) {
			t.Errorf("%s: only %v were found: the case is too weak", name, found)
		}
	}
}

// The memory that a search is like may be deleted during the search: the search has begun, and returns
// what it found.
func TestSearchLikeWhatExpires(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st, looks, jump := boats(t, map[string]time.Duration{"l": time.Minute, "a": time.Minute, "b": 0, "c": 0})
	begun := false
	for at := int64(0); ; at++ {
		looks.Store(0)
		jump.Store(at)
		hits, err := st.Search(ctx, varve.Query{Like: "l", Limit: 2})
		if begun = begun || err == nil; begun && (err != nil || len(hits) == 0) {
			t.Errorf("from look %d at the clock on: %d hits, %v", at, len(hits), err)
		}
		if looks.Load() < at {
			break
		}
	}
}

// An assembly that is deleted while a search ranks it leaves its place to the next one.
func TestSearchOfAnAssemblyThatGoes(t *testing.T) {
	t.Parallel()
	ctx, dir := context.Background(), t.TempDir()
	other := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	for _, id := range []string{"a", "b"} {
		_, err := other.Put(ctx, varve.Memory{ID: "of " + id, Content: "a boat", Embedding: []float32{1, 2, 3}})
		fixture.Must(t, err)
		if id == "b" {
			_, err = other.Assemblies().Put(ctx, varve.Assembly{ID: id, MemoryIDs: []string{"of " + id}})
			fixture.Must(t, err)
		}
	}
	var ops atomic.Int64
	var at atomic.Int64
	st := fixture.Open(t, dir, storetest.In(&varve.Options{NoBackground: true},
		storetest.Environment{System: vfs.System{FS: wrap.New(vfs.OS(), func(op *wrap.Op, call func() error) error {
			if ops.Add(1) == at.Load() {
				fixture.Must(t, other.Assemblies().Delete(ctx, "a"))
			}
			return call()
		})}}))
	for n := int64(1); ; n++ {
		at.Store(0)
		if _, err := other.Assemblies().Get(ctx, "a"); err != nil {
			_, err := other.Assemblies().Put(ctx, varve.Assembly{ID: "a", MemoryIDs: []string{"of a"}})
			fixture.Must(t, err)
		}
		ops.Store(0)
		at.Store(n)
		hits, err := st.Assemblies().Search(ctx, varve.Query{Vector: []float32{1, 2, 3}, Limit: 1})
		if err != nil || len(hits) != 1 {
			t.Fatalf("deleted before operation %d: %d hits, %v", n, len(hits), err)
		}
		if ops.Load() < n {
			t.Logf("%d operations", n-1)
			break
		}
	}
}
