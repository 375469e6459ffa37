package varve

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// A query whose model is named finds nothing by the vectors of another one; before,
// amid and after a change of the model.
func TestSearchModel(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	was, is := modelOf("old", 3), modelOf("new", 3)
	e, older := &teller{}, &teller{}
	older.set(asking(was))
	e.set(asking(is))
	old := switchStore(t, dir, older)
	check := func(st *Store, serving, other string, vectorOf func(string) []float32) {
		t.Helper()
		for _, model := range []string{"", serving} {
			if hits, err := st.Search(ctx, Query{Vector: vectorOf("text 7"), Model: model, Limit: 1}); err != nil || len(hits) != 1 || hits[0].ID != "m07" {
				t.Errorf("by %q: %v, %v", model, hits, err)
			}
			if hits, err := st.Assemblies().Search(ctx, Query{Vector: vectorOf("text 7"), Model: model}); err != nil || len(hits) != 1 {
				t.Errorf("assemblies by %q: %v, %v", model, hits, err)
			}
		}
		_, err := st.Search(ctx, Query{Vector: vectorOf("text 7"), Model: other})
		_, aerr := st.Assemblies().Search(ctx, Query{Vector: vectorOf("text 7"), Model: other})
		for _, err := range []error{err, aerr} {
			var m *ModelError
			if !errors.Is(err, ErrModel) || !errors.As(err, &m) || m.Model != serving || m.Other != other || !strings.Contains(err.Error(), serving) || !strings.Contains(err.Error(), other) {
				t.Errorf("by %q: %v", other, err)
			}
		}
	}
	plain := openTest(t, dir, &Options{ReadOnly: true})
	check(plain, "old", "new", was)
	st := openTest(t, dir, &Options{NoBackground: true, Embed: e.embed, EmbedModel: "new", EmbedBatch: 4})
	seen := 0
	if _, err := st.Vectors().Reembed(ctx, ReembedOptions{Progress: func(r ReembedReport) {
		for _, st := range []*Store{st, plain, old} {
			if r.Written > 0 {
				seen++
				check(st, "new", "old", is)
			} else if st.Admin().Stats().NextModel != "" {
				check(st, "old", "new", was)
			}
		}
	}}); err != nil || seen == 0 {
		t.Fatal(err, seen)
	}
	check(plain, "new", "old", is)
	if _, err := plain.Search(ctx, Query{Text: "text", Model: "new"}); !errors.Is(err, ErrInvalid) {
		t.Error("a model without a vector:", err)
	}
	// Where nobody ever named a model none is refused.
	unnamed := openTest(t, t.TempDir(), &Options{NoBackground: true})
	if _, err := unnamed.Put(ctx, Memory{ID: "a", Embedding: []float32{1, 2, 3}}); err != nil {
		t.Fatal(err)
	}
	if hits, err := unnamed.Search(ctx, Query{Vector: []float32{1, 2, 3}, Model: "any"}); err != nil || len(hits) != 1 {
		t.Error(hits, err)
	}
}
