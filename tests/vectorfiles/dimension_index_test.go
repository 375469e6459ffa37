package vectorfiles

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// A process determines the store's dimension while it maps an index that is ahead of the log that it has
// read: there is none, then and afterwards.
func TestDimensionOfAnIndexAhead(t *testing.T) {
	t.Parallel()
	ctx, dir := context.Background(), t.TempDir()
	other := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	puts := func(id string) {
		t.Helper()
		_, err := other.Put(ctx, varve.Memory{ID: id, Content: "text of " + id})
		fixture.Must(t, err)
		fixture.Must(t, other.Flush(ctx))
	}
	puts("a")
	var armed atomic.Bool
	fsys := wrap.New(vfs.OS(), func(op *wrap.Op, call func() error) error {
		if filepath.Base(op.Path) == "memory_index.json" && armed.CompareAndSwap(true, false) {
			puts("c") // after the check of the log, before that of the index
		}
		return call()
	})
	st := fixture.Open(t, dir, storetest.In(&varve.Options{NoBackground: true},
		storetest.Environment{System: vfs.System{FS: fsys}}))
	puts("b")
	armed.Store(true)
	dim, on, err := storetest.Inner(st).Vectors.Dimension(ctx)
	if armed.Load() || storetest.Inner(st).Engine.State().From() <= on.LSN {
		t.Fatalf("the case is too weak: %v, the index covers %d, and %d was looked through", armed.Load(),
			storetest.Inner(st).Engine.State().From(), on.LSN)
	}
	for range 2 {
		if dim != 0 || err != nil {
			t.Fatalf("%d, %v", dim, err)
		}
		dim, _, err = storetest.Inner(st).Vectors.Dimension(ctx)
	}
	_, err = st.Put(ctx, varve.Memory{ID: "d", Content: "text of d", Embedding: []float32{1, 2, 3}})
	fixture.Must(t, err)
	if dim, _, err := storetest.Inner(st).Vectors.Dimension(ctx); dim != 3 || err != nil {
		t.Errorf("%d, %v", dim, err)
	}
}
