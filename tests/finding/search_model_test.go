package finding

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// A query that names its model finds nothing by the vectors of another one; before, during and after a
// change of the model.
func TestSearchModel(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	was, is := fixture.ModelOf("old", 3), fixture.ModelOf("new", 3)
	e, older := &fixture.Embedder{}, &fixture.Embedder{}
	older.Set(fixture.AnswerBy(was))
	e.Set(fixture.AnswerBy(is))
	old := fixture.SwitchStore(t, dir, older)
	check := func(st *varve.Store, serving, other string, vectorOf func(string) []float32) {
		t.Helper()
		for _, model := range []string{"", serving} {
			if hits, err := st.Search(ctx,
				varve.Query{Vector: vectorOf("text 7"), Model: model, Limit: 1}); err != nil || len(hits) != 1 ||
				hits[0].ID != "m07" {
				t.Errorf("by %q: %v, %v", model, hits, err)
			}
			if hits, err := st.Assemblies().Search(ctx,
				varve.Query{Vector: vectorOf("text 7"), Model: model}); err != nil || len(hits) != 1 {
				t.Errorf("assemblies by %q: %v, %v", model, hits, err)
			}
		}
		_, err := st.Search(ctx, varve.Query{Vector: vectorOf("text 7"), Model: other})
		_, aerr := st.Assemblies().Search(ctx, varve.Query{Vector: vectorOf("text 7"), Model: other})
		for _, err := range []error{err, aerr} {
			var m *varve.ModelError
			if !errors.Is(err, varve.ErrModel) || !errors.As(err, &m) || m.Model != serving || m.Other != other ||
				!strings.Contains(err.Error(), serving) || !strings.Contains(err.Error(), other) {
				t.Errorf("by %q: %v", other, err)
			}
		}
	}
	plain := fixture.Open(t, dir, &varve.Options{ReadOnly: true})
	check(plain, "old", "new", was)
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true, Embed: e.Embed, EmbedModel: "new", EmbedBatch: 4})
	seen := 0
	if _, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{Progress: func(r varve.ReembedReport) {
		for _, st := range []*varve.Store{st, plain, old} {
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
	if _, err := plain.Search(ctx, varve.Query{Text: "text", Model: "new"}); !errors.Is(err, varve.ErrInvalid) {
		t.Error("a model without a vector:", err)
	}
	// If no model was ever named, none is refused.
	unnamed := fixture.Open(t, t.TempDir(), &varve.Options{NoBackground: true})
	if _, err := unnamed.Put(ctx, varve.Memory{ID: "a", Embedding: []float32{1, 2, 3}}); err != nil {
		t.Fatal(err)
	}
	if hits, err := unnamed.Search(ctx,
		varve.Query{Vector: []float32{1, 2, 3}, Model: "any"}); err != nil || len(hits) != 1 {
		t.Error(hits, err)
	}
}
