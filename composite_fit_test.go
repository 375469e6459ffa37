package varve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A composite that no member gives is held to the store's dimension like any other
// vector: it was taken, stamped as indexed, and never found. FAILURES 39, 45.
func TestCompositeDimension(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
	st := openTest(t, t.TempDir(), &Options{NoBackground: true})
	put(t, st, "a", 1, 0)
	put(t, st, "b", 0, 1) // it is looked for by the second
	j := st.inner.Committer.Joint(context.Background())
	held, err := st.inner.Engine.Log().LockFlush(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Unlock()
	j.Held = held
	st.inner.Vectors.Mu.Lock()
	defer st.inner.Vectors.Mu.Unlock()
	if d, err := j.Dimension(); d != 2 || err != nil {
		t.Errorf("%d dimensions, %v", d, err)
	}
}

// Who takes an edit over while it has flush.lock knows the dimension since a change of
// the model too.
func TestCompositeOfEditAfterSwitch(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	e := &teller{}
	e.set(asking(modelOf("old", 3)))
	st := openTest(t, dir, &Options{NoBackground: true, Embed: e.embed, EmbedModel: "old"})
	for _, id := range []string{"a", "b", "c"} {
		_, err := st.Put(ctx, Memory{ID: id, Content: "text " + id})
		must(t, err)
	}
	_, err := st.Assemblies().Put(ctx, Assembly{ID: "g", Name: "g", MemoryIDs: []string{"a", "b"}})
	must(t, err)
	must(t, st.Flush(ctx))
	if st.inner.Vectors.Known.Load() != 3 {
		t.Fatal("the case is too weak: the dimension was not looked for")
	}
	is := modelOf("new", 4)
	e.set(asking(is))
	st.inner.Embedding.Tune().Model, st.inner.Embedding.Dimension = "new", 0
	_, err = st.Vectors().Reembed(ctx, ReembedOptions{})
	must(t, err)
	must(t, st.Flush(ctx))
	// Somebody edits a member by hand.
	file := filepath.Join(dir, "memories", "a.json")
	b, err := os.ReadFile(file)
	must(t, err)
	v := is("text a")
	v[0] += 3
	edited := strings.Replace(string(b), fmt.Sprint(is("text a")[0]), fmt.Sprint(v[0]), 1)
	if edited == string(b) {
		t.Fatalf("the case is too weak: %s", b)
	}
	must(t, os.WriteFile(file, []byte(edited), 0o600))
	m, err := st.Get(ctx, "a")
	if err != nil || !slices.Equal(m.Embedding, v) {
		t.Fatal(m, err)
	}
	must(t, st.Flush(ctx))
	a, err := st.Assemblies().Get(ctx, "g")
	if err != nil || len(a.CompositeEmbedding) != 4 {
		t.Fatal(a.CompositeEmbedding, err)
	}
	noDrift(t, st, "edited", 3)
}
