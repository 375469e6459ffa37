package vectorfiles

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/vector"
)

// The index is rebuilt, and nothing was written since the vectors were: they get other numbers, over a
// base as of the same position.
func TestVectorsOfAnIndexMadeAnew(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	r := rand.New(rand.NewPCG(9, 9))
	dir := t.TempDir()
	written := 0
	o := storetest.In(&varve.Options{NoBackground: true, Listener: func(e varve.Event) {
		if e.Kind == varve.EventVectors {
			written++
		}
	}}, storetest.Environment{System: vfs.System{SmallVectors: 1}})
	st := fixture.Open(t, dir, o)
	fixture.PutVectors(t, st, r, 0, 30)
	if err := st.Admin().Compact(ctx); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"memory_index.json", "memory_index.delta.json", "backups"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	written = 0
	st = fixture.Open(t, dir, o)
	fixture.CheckVectors(t, st, "made anew", 30)
	if written != 1 {
		t.Fatalf("the vectors were written %d times: a search has them in its heap", written)
	}
	set, err := vector.Load(vfs.OS(), dir, uuid.UUID(storetest.Inner(st).Engine.Log().UUID()).String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	v, err := storetest.Inner(st).Engine.Find(ctx, storetest.Inner(st).Engine.Kinds().Memories, "m7", false)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := set.ID(vector.Memories, "m7"); err != nil || id != v.Line.VectorNumber() {
		t.Errorf("the number is %d, the line says %d, %v", id, v.Line.VectorNumber(), err)
	}
	if err := set.Release(); err != nil {
		t.Fatal(err)
	}
	fixture.PutVectors(t, st, r, 25, 35)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	st = fixture.Open(t, dir, o)
	fixture.CheckVectors(t, st, "afterwards", 35)
}
