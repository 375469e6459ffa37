package vectorfiles

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
)

// A composite that no member provides must have the store's dimension like any other vector: it was
// accepted, marked as indexed, and never found. FAILURES 39, 45.
func TestCompositeDimension(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st := fixture.Open(t, t.TempDir(), &varve.Options{NoBackground: true})
	for _, m := range []varve.Memory{{ID: "plain"}, {ID: "m", Embedding: []float32{1, 2, 3}}} {
		if _, err := st.Put(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	five := varve.Assembly{ID: "a", MemoryIDs: []string{"plain"}, CompositeEmbedding: []float32{1, 2, 3, 4, 5}}
	_, err := st.Assemblies().Put(ctx, five)
	if !errors.Is(err, varve.ErrDimension) || !strings.Contains(err.Error(), "5 dimensions") ||
		!strings.Contains(err.Error(), "3 dimensions") {
		t.Error(err)
	}
	if a, err := st.Assemblies().Put(ctx, five,
		varve.AnyDimension()); err != nil || len(a.CompositeEmbedding) != 5 || !a.VectorIndexUpdatedAt.IsZero() {
		t.Error(a, err)
	}
	if a, err := st.Assemblies().Activate(ctx, "a", 1); err != nil || !a.VectorIndexUpdatedAt.IsZero() {
		t.Error("what it has may stay, without a vector:", a, err)
	}
	five.ID, five.MemoryIDs = "b", []string{"m"} // the members' counts
	if a, err := st.Assemblies().Put(ctx, five); err != nil || len(a.CompositeEmbedding) != 3 {
		t.Error(a, err)
	}
	three := varve.Assembly{ID: "c", MemoryIDs: []string{"plain"}, CompositeEmbedding: []float32{3, 2, 1}}
	if a, err := st.Assemblies().Put(ctx, three); err != nil || a.VectorIndexUpdatedAt.IsZero() {
		t.Error(a, err)
	}
	if hits, err := st.Assemblies().Search(ctx,
		varve.Query{Vector: []float32{3, 2, 1}, Limit: 1}); err != nil || len(hits) != 1 || hits[0].ID != "c" {
		t.Error(hits, err)
	}
}

// Nor can two processes fix two dimensions, one by a memory and one by an assembly.
func TestFirstVectorAComposite(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for round := range 5 {
		dir := t.TempDir()
		errs := make(chan error)
		for i := range 4 {
			st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
			go func() {
				v, err := make([]float32, i+1), error(nil)
				if v[0] = 1; i%2 == 0 {
					_, err = st.Put(ctx, varve.Memory{ID: fmt.Sprint(i), Embedding: v})
				} else {
					_, err = st.Assemblies().Put(ctx, varve.Assembly{ID: fmt.Sprint(i), CompositeEmbedding: v})
				}
				errs <- err
			}()
		}
		good := 0
		for range 4 {
			switch err := <-errs; {
			case err == nil:
				good++
			case !errors.Is(err, varve.ErrDimension):
				t.Error(err)
			}
		}
		if good != 1 {
			t.Errorf("round %d: %d dimensions were decided", round, good)
		}
	}
}

// The holder of flush.lock knows the dimension even while another process determines it: otherwise the
// composite of an adopted edit would get the dimension of its first member.
func TestDimensionBesideWhoLooks(t *testing.T) {
	t.Parallel()
	st := fixture.Open(t, t.TempDir(), &varve.Options{NoBackground: true})
	fixture.Put(t, st, "a", 1, 0)
	fixture.Put(t, st, "b", 0, 1) // the second one searches for it
	j := storetest.Inner(st).Committer.Joint(context.Background())
	held, err := storetest.Inner(st).Engine.Log().LockFlush(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Unlock()
	j.Held = held
	storetest.Inner(st).Vectors.Mu.Lock()
	defer storetest.Inner(st).Vectors.Mu.Unlock()
	if d, err := j.Dimension(); d != 2 || err != nil {
		t.Errorf("%d dimensions, %v", d, err)
	}
}

// A process that adopts an edit under flush.lock knows the dimension after a change of the model too.
func TestCompositeOfEditAfterSwitch(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	e := &fixture.Embedder{}
	e.Set(fixture.AnswerBy(fixture.ModelOf("old", 3)))
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true, Embed: e.Embed, EmbedModel: "old"})
	for _, id := range []string{"a", "b", "c"} {
		_, err := st.Put(ctx, varve.Memory{ID: id, Content: "text " + id})
		fixture.Must(t, err)
	}
	_, err := st.Assemblies().Put(ctx, varve.Assembly{ID: "g", Name: "g", MemoryIDs: []string{"a", "b"}})
	fixture.Must(t, err)
	fixture.Must(t, st.Flush(ctx))
	if storetest.Inner(st).Vectors.Known.Load() != 3 {
		t.Fatal("the case is too weak: the dimension was not looked for")
	}
	is := fixture.ModelOf("new", 4)
	e.Set(fixture.AnswerBy(is))
	storetest.Inner(st).Embedding.Tune().Model, storetest.Inner(st).Embedding.Dimension = "new", 0
	_, err = st.Vectors().Reembed(ctx, varve.ReembedOptions{})
	fixture.Must(t, err)
	fixture.Must(t, st.Flush(ctx))
	// A member is edited by hand.
	file := filepath.Join(dir, "memories", "a.json")
	b, err := os.ReadFile(file)
	fixture.Must(t, err)
	v := is("text a")
	v[0] += 3
	edited := strings.Replace(string(b), fmt.Sprint(is("text a")[0]), fmt.Sprint(v[0]), 1)
	if edited == string(b) {
		t.Fatalf("the case is too weak: %s", b)
	}
	fixture.Must(t, os.WriteFile(file, []byte(edited), 0o600))
	m, err := st.Get(ctx, "a")
	if err != nil || !slices.Equal(m.Embedding, v) {
		t.Fatal(m, err)
	}
	fixture.Must(t, st.Flush(ctx))
	a, err := st.Assemblies().Get(ctx, "g")
	if err != nil || len(a.CompositeEmbedding) != 4 {
		t.Fatal(a.CompositeEmbedding, err)
	}
	fixture.CheckVectors(t, st, "edited", 3)
}
