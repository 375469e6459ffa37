package logs

import (
	"context"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
)

// The number of a composite's vector stays as long as the composite does, however often the assembly is
// written: otherwise each activation would write the vector again.
func TestCompositeKeepsItsNumber(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st := fixture.Open(t, t.TempDir(), &varve.Options{NoBackground: true})
	if _, err := st.Put(ctx, varve.Memory{ID: "m", Embedding: []float32{1, 2, 3}}); err != nil {
		t.Fatal(err)
	}
	first, err := st.Assemblies().Put(ctx, varve.Assembly{ID: "a", MemoryIDs: []string{"m"}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 { // from the log, from the cache, from the index
		if _, err := st.Assemblies().Activate(ctx, "a", 0.1); err != nil {
			t.Fatal(err)
		}
		v, err := storetest.Inner(st).Engine.Find(ctx, storetest.Inner(st).Engine.Kinds().Assemblies, "a", false)
		if err != nil || v.Line.VectorNumber() != int64(first.Version) {
			t.Errorf("after %d activations the number is %d, want %d, %v", i+1, v.Line.VectorNumber(), first.Version, err)
		}
		if i == 1 {
			if err := st.Flush(ctx); err != nil {
				t.Fatal(err)
			}
			storetest.Inner(st).Engine.Cache().InvalidateAll()
		}
	}
	if _, err := st.Put(ctx, varve.Memory{ID: "m", Embedding: []float32{3, 2, 1}}); err != nil {
		t.Fatal(err)
	}
	if v, err := storetest.Inner(st).Engine.Find(ctx, storetest.Inner(st).Engine.Kinds().Assemblies, "a",
		false); err != nil || v.Line.VectorNumber() != int64(v.LSN) {
		t.Errorf("another composite has the number %d, %v", v.Line.VectorNumber(), err)
	}
}

// Two members that exchange their vectors leave the composite unchanged. A writer that adds a third
// member meanwhile may have read one member before and one after: the assembly's version must show that.
func TestMembersChangePlaces(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st := fixture.Open(t, t.TempDir(), &varve.Options{NoBackground: true})
	x, y := []float32{1, 0, 0}, []float32{0, 1, 0}
	put := func(m0, m1 []float32) {
		b := new(varve.Batch)
		b.Put(varve.Memory{ID: "m0", Embedding: m0})
		b.Put(varve.Memory{ID: "m1", Embedding: m1})
		if err := st.Apply(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	put(x, y)
	was, err := st.Assemblies().Put(ctx, varve.Assembly{ID: "a", MemoryIDs: []string{"m0", "m1"}})
	if err != nil {
		t.Fatal(err)
	}
	put(y, x)
	is, err := st.Assemblies().Get(ctx, "a")
	if err != nil || is.Version == was.Version {
		t.Error("the assembly's version does not tell", err)
	}
	put(y, x)
	if again, err := st.Assemblies().Get(ctx, "a"); err != nil || again.Version != is.Version {
		t.Error("the same once more is no change", err)
	}
}
