package backups

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// A document that was deleted, in whatever way, is restored as it was, and so is one that was replaced.
func TestUndelete(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := fixture.ClockAt(time.Unix(1_800_000_000, 0))
	st := fixture.Open(t, t.TempDir(), c.On(&varve.Options{NoBackground: true, Clock: c.Tick}))
	first, err := st.Put(ctx,
		varve.Memory{ID: "m", Content: "first", Embedding: []float32{1, 2}, Metadata: map[string]any{"k": "v"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Undelete(ctx, "m"); !errors.Is(err, varve.ErrInvalid) {
		t.Errorf("not deleted: %v", err)
	}
	if _, err := st.Undelete(ctx, "none"); !errors.Is(err, varve.ErrNotFound) {
		t.Errorf("unknown: %v", err)
	}
	second, err := st.Put(ctx, varve.Memory{ID: "m", Content: "second", Embedding: []float32{3, 4}})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Delete(ctx, "m"); err != nil {
		t.Fatal(err)
	}
	got, err := st.Undelete(ctx, "m")
	if err != nil || got.Content != "second" || !slices.Equal(got.Embedding, second.Embedding) ||
		got.Version <= second.Version || !got.CreatedAt.Equal(first.CreatedAt) {
		t.Errorf("%+v, %v", got, err)
	}
	if hits, err := st.Search(ctx, varve.Query{Vector: []float32{3, 4}}); err != nil || len(hits) != 1 {
		t.Errorf("by its vector: %v, %v", hits, err)
	}
	got, err = st.Revert(ctx, "m", first.Version)
	if err != nil || got.Content != "first" || got.Metadata["k"] != "v" || !slices.Equal(got.Embedding, first.Embedding) {
		t.Errorf("%+v, %v", got, err)
	}
	var none *varve.NoVersionError
	if _, err := st.Revert(ctx, "m", first.Version+1); !errors.As(err, &none) || none.Oldest != first.Version {
		t.Errorf("no such version: %v", err)
	}
	if err := st.Delete(ctx, "m"); err != nil {
		t.Fatal(err)
	}
	var deletion uint64
	for v, err := range st.History(ctx, "m") {
		if err != nil {
			t.Fatal(err)
		}
		deletion = v.LSN
	}
	if _, err := st.Revert(ctx, "m", deletion); !errors.Is(err, varve.ErrInvalid) {
		t.Errorf("to a deletion: %v", err)
	}
	if got, err = st.Revert(ctx, "m", second.Version); err != nil || got.Content != "second" { // also of a deleted one
		t.Errorf("%+v, %v", got, err)
	}
	// An expired memory is restored for good.
	if _, err := st.Put(ctx, varve.Memory{ID: "e", Content: "soon", ExpiresAt: c.Now().Add(time.Minute)}); err != nil {
		t.Fatal(err)
	}
	c.Add(time.Hour)
	if got, err = st.Undelete(ctx, "e"); err != nil || !got.ExpiresAt.IsZero() {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = st.Get(ctx, "e"); err != nil || got.Content != "soon" {
		t.Errorf("%+v, %v", got, err)
	}
}

// A member that is gone is not in an assembly that is restored.
func TestUndeleteAssembly(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st := fixture.Open(t, t.TempDir(), &varve.Options{NoBackground: true})
	for _, id := range []string{"m0", "m1"} {
		if _, err := st.Put(ctx, varve.Memory{ID: id, Content: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	first, err := st.Assemblies().Put(ctx, varve.Assembly{ID: "a", Name: "first", MemoryIDs: []string{"m0", "m1"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Assemblies().Delete(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if err := st.Delete(ctx, "m0"); err != nil {
		t.Fatal(err)
	}
	for _, back := range []func() (varve.Assembly, error){
		func() (varve.Assembly, error) { return st.Assemblies().Undelete(ctx, "a") },
		func() (varve.Assembly, error) { return st.Assemblies().Revert(ctx, "a", first.Version) },
	} {
		if a, err := back(); err != nil || a.Name != "first" || !slices.Equal(a.MemoryIDs, []string{"m1"}) {
			t.Errorf("%+v, %v", a, err)
		}
	}
}

// In a store that was restored or cloned, a deleted document is restored from its kept copy; if a
// program that kept none deleted it, only the deletion is known.
func TestUndeleteKept(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := fixture.ClockAt(time.Unix(1_800_000_000, 0))
	dir, versions := lastCopies(t, "clone", c)
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true, Clock: c.Tick})
	if err := st.Delete(ctx, "m0"); err != nil {
		t.Fatal(err)
	}
	if m, err := st.Undelete(ctx, "m0"); err != nil || m.Content != "only copy 0" {
		t.Errorf("%+v, %v", m, err)
	}
	if m, err := st.Revert(ctx, "m0", versions["m0"]); err != nil || m.Content != "only copy 0" {
		t.Errorf("%+v, %v", m, err)
	}
	if a, err := st.Assemblies().Revert(ctx, "a", versions["a"]); err != nil || !slices.Equal(a.MemoryIDs,
		[]string{"m0"}) {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := st.Admin().Purge(ctx, "m0"); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Undelete(ctx, "m0"); !errors.Is(err, varve.ErrNotFound) || err != nil && strings.Contains(err.Error(),
		"only copy") {
		t.Errorf("after a purge: %v", err)
	}
}
