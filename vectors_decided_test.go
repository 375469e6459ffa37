package varve

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/vector"
)

// Two processes agree on the dimension also where the vector that had decided it is gone
// again: what the one remembers holds no longer than what the other finds.
func TestDecidedTogether(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, with := range []string{"delete", "update", "flush", "spill"} {
		t.Run(with, func(t *testing.T) {
			dir := t.TempDir()
			a, b := openTest(t, dir, &Options{NoBackground: true}), openTest(t, dir, &Options{NoBackground: true})
			_, err := b.Put(ctx, Memory{ID: "first", Content: "x", Embedding: []float32{1, 2, 3}})
			must(t, err)
			_, err = b.Put(ctx, Memory{ID: "second", Content: "y", Embedding: []float32{1, 2, 4}}) // b has looked
			must(t, err)
			must(t, b.Delete(ctx, "second"))
			switch with {
			case "update":
				_, err := a.Update(ctx, "first", func(m *Memory) error { m.Embedding = nil; return nil })
				must(t, err)
			case "delete", "flush":
				must(t, a.Delete(ctx, "first"))
			}
			if with == "flush" {
				must(t, a.Flush(ctx))
			}
			if with == "spill" { // it keeps its dimension
				must(t, a.Flush(ctx))
				must(t, a.Delete(ctx, "first"))
				must(t, a.Flush(ctx))
				must(t, vector.Remove(a.inner.Engine.Env().FS, dir))
				must(t, a.RebuildVectors(ctx))
				_, err := a.Put(ctx, Memory{ID: "plain"})
				must(t, err)
				must(t, a.Flush(ctx))
				if _, err := os.Stat(filepath.Join(dir, vector.Folder, "mapping.json")); !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
			}
			_, aerr := a.Put(ctx, Memory{ID: "a", Embedding: []float32{1, 2, 3, 4}})
			_, berr := b.Put(ctx, Memory{ID: "b", Embedding: []float32{1, 2, 3}})
			if of4 := with != "spill"; (aerr == nil) != of4 || (berr == nil) == of4 {
				t.Errorf("4 dimensions: %v; 3 dimensions: %v", aerr, berr)
			}
			for _, st := range []*Store{a, b, openTest(t, dir, &Options{NoBackground: true})} {
				r, err := storetest.CheckVectors(ctx, st)
				if err != nil || r.Drift() != 0 || len(r.Misfits) != 0 || r.Vectors != 1 {
					t.Errorf("%+v, %v", r, err)
				}
			}
		})
	}
}
