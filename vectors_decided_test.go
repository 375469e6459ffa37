package varve_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/vector"
)

// TestDecidedTogether verifies that two processes agree on the dimension even if the vector that had decided it no
// longer exists: what one process remembers applies only until the other finds something else.
func TestDecidedTogether(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, with := range []string{"delete", "update", "flush", "spill"} {
		t.Run(with, func(t *testing.T) {
			dir := t.TempDir()
			a, b := fixture.Open(t, dir, &varve.Options{NoBackground: true}),
				fixture.Open(t, dir, &varve.Options{NoBackground: true})
			_, err := b.Put(ctx, varve.Memory{ID: "first", Content: "x", Embedding: []float32{1, 2, 3}})
			fixture.Must(t, err)
			_, err = b.Put(ctx, varve.Memory{ID: "second", Content: "y", Embedding: []float32{1, 2, 4}}) // b has searched
			fixture.Must(t, err)
			fixture.Must(t, b.Delete(ctx, "second"))
			switch with {
			case "update":
				_, err := a.Update(ctx, "first", func(m *varve.Memory) error { m.Embedding = nil; return nil })
				fixture.Must(t, err)
			case "delete", "flush":
				fixture.Must(t, a.Delete(ctx, "first"))
			}
			if with == "flush" {
				fixture.Must(t, a.Flush(ctx))
			}
			if with == "spill" { // the index keeps its dimension
				fixture.Must(t, a.Flush(ctx))
				fixture.Must(t, a.Delete(ctx, "first"))
				fixture.Must(t, a.Flush(ctx))
				fixture.Must(t, vector.Remove(storetest.Inner(a).Engine.Env().FS, dir))
				fixture.Must(t, storetest.Inner(a).RebuildVectors(ctx))
				_, err := a.Put(ctx, varve.Memory{ID: "plain"})
				fixture.Must(t, err)
				fixture.Must(t, a.Flush(ctx))
				if _, err := os.Stat(filepath.Join(dir, vector.Folder, "mapping.json")); !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
			}
			_, aerr := a.Put(ctx, varve.Memory{ID: "a", Embedding: []float32{1, 2, 3, 4}})
			_, berr := b.Put(ctx, varve.Memory{ID: "b", Embedding: []float32{1, 2, 3}})
			if of4 := with != "spill"; (aerr == nil) != of4 || (berr == nil) == of4 {
				t.Errorf("4 dimensions: %v; 3 dimensions: %v", aerr, berr)
			}
			for _, st := range []*varve.Store{a, b, fixture.Open(t, dir, &varve.Options{NoBackground: true})} {
				r, err := storetest.CheckVectors(ctx, st)
				if err != nil || r.Drift() != 0 || len(r.Misfits) != 0 || r.Vectors != 1 {
					t.Errorf("%+v, %v", r, err)
				}
			}
		})
	}
}
