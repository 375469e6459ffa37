package varve

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// A composite that no member gives is held to the store's dimension like any other
// vector: it was taken, stamped as indexed, and never found. FAILURES 39, 45.
func TestCompositeDimension(t *testing.T) {
	ctx := context.Background()
	st := openTest(t, t.TempDir(), &Options{NoBackground: true})
	for _, m := range []Memory{{ID: "plain"}, {ID: "m", Embedding: []float32{1, 2, 3}}} {
		if _, err := st.Put(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	five := Assembly{ID: "a", MemoryIDs: []string{"plain"}, CompositeEmbedding: []float32{1, 2, 3, 4, 5}}
	_, err := st.Assemblies().Put(ctx, five)
	if !errors.Is(err, ErrDimension) || !strings.Contains(err.Error(), "5 dimensions") || !strings.Contains(err.Error(), "3 dimensions") {
		t.Error(err)
	}
	if a, err := st.Assemblies().Put(ctx, five, AnyDimension()); err != nil || len(a.CompositeEmbedding) != 5 || !a.VectorIndexUpdatedAt.IsZero() {
		t.Error(a, err)
	}
	if a, err := st.Assemblies().Activate(ctx, "a", 1); err != nil || !a.VectorIndexUpdatedAt.IsZero() {
		t.Error("what it has may stay, without a vector:", a, err)
	}
	five.ID, five.MemoryIDs = "b", []string{"m"} // the members' counts
	if a, err := st.Assemblies().Put(ctx, five); err != nil || len(a.CompositeEmbedding) != 3 {
		t.Error(a, err)
	}
	three := Assembly{ID: "c", MemoryIDs: []string{"plain"}, CompositeEmbedding: []float32{3, 2, 1}}
	if a, err := st.Assemblies().Put(ctx, three); err != nil || a.VectorIndexUpdatedAt.IsZero() {
		t.Error(a, err)
	}
	if hits, err := st.Assemblies().Search(ctx, Query{Vector: []float32{3, 2, 1}, Limit: 1}); err != nil || len(hits) != 1 || hits[0].ID != "c" {
		t.Error(hits, err)
	}
}

// Nor can two processes decide two dimensions, one by a memory and one by an assembly.
func TestFirstVectorAComposite(t *testing.T) {
	ctx := context.Background()
	for round := range 5 {
		dir := t.TempDir()
		errs := make(chan error)
		for i := range 4 {
			st := openTest(t, dir, &Options{NoBackground: true})
			go func() {
				v, err := make([]float32, i+1), error(nil)
				if v[0] = 1; i%2 == 0 {
					_, err = st.Put(ctx, Memory{ID: fmt.Sprint(i), Embedding: v})
				} else {
					_, err = st.Assemblies().Put(ctx, Assembly{ID: fmt.Sprint(i), CompositeEmbedding: v})
				}
				errs <- err
			}()
		}
		good := 0
		for range 4 {
			switch err := <-errs; {
			case err == nil:
				good++
			case !errors.Is(err, ErrDimension):
				t.Error(err)
			}
		}
		if good != 1 {
			t.Errorf("round %d: %d dimensions were decided", round, good)
		}
	}
}

// Who has flush.lock knows the dimension also while somebody else looks for it: the
// composite of an adopted edit would be made of whatever its first member has.
func TestDimensionBesideWhoLooks(t *testing.T) {
	st := openTest(t, t.TempDir(), &Options{NoBackground: true})
	put(t, st, "a", 1, 0)
	put(t, st, "b", 0, 1) // it is looked for by the second
	j := st.joint(context.Background())
	j.held = true
	st.vectors.mu.Lock()
	defer st.vectors.mu.Unlock()
	if d, err := j.dimension(); d != 2 || err != nil {
		t.Errorf("%d dimensions, %v", d, err)
	}
}
