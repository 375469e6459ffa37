package embeddings

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/view/vectors"
)

// A re-embedding whose process is gone forever is canceled by another process, which has no embedder;
// after the switch it can only be continued.
func TestCancelReembed(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	e := &fixture.Embedder{}
	open := func(model string) *varve.Store {
		return fixture.Open(t, dir, &varve.Options{NoBackground: true, Embed: e.Embed, EmbedModel: model, EmbedBatch: 2})
	}
	was, is := fixture.ModelOf("old", 3), fixture.ModelOf("new", 3)
	e.Set(fixture.AnswerBy(was))
	old := open("old")
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		if _, err := old.Put(ctx, varve.Memory{ID: id, Content: "text " + id}); err != nil {
			t.Fatal(err)
		}
	}
	plain := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	if model, err := plain.Vectors().CancelReembed(ctx); model != "" || err != nil {
		t.Fatalf("none was begun: %q, %v", model, err)
	}
	half := func(until func(varve.ReembedReport) bool) {
		t.Helper()
		e.Set(fixture.AnswerBy(is))
		st := open("new")
		ctx, end := context.WithCancel(ctx)
		_, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{Progress: func(r varve.ReembedReport) {
			if until(r) {
				if _, err := plain.Vectors().CancelReembed(context.Background()); !errors.Is(err, varve.ErrLocked) {
					t.Error("while it runs:", err)
				}
				end()
			}
		}})
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
	half(func(r varve.ReembedReport) bool { return r.Computed == 2 })
	if s := plain.Admin().Stats(); s.NextModel != "new" {
		t.Fatalf("%+v", s)
	}
	if model, err := plain.Vectors().CancelReembed(ctx); model != "new" || err != nil {
		t.Fatalf("%q, %v", model, err)
	}
	if s := plain.Admin().Stats(); s.NextModel != "" || s.Model != "old" {
		t.Errorf("%+v", s)
	}
	if _, err := os.Stat(storetest.Inner(plain).Vectors.ComputedPath(vectors.ComputedName)); !errors.Is(err,
		os.ErrNotExist) {
		t.Error("what was computed is still there:", err)
	}
	if by, why := fixture.ModelServed(t, plain, map[string]func(string) []float32{"old": was}); by != "old" {
		t.Error(why)
	}
	half(func(r varve.ReembedReport) bool { return r.Written > 0 })
	if _, err := plain.Vectors().CancelReembed(ctx); !errors.Is(err, varve.ErrConflict) {
		t.Fatal("behind the switch:", err)
	}
	st := open("new")
	if _, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{}); err != nil {
		t.Fatal(err)
	}
	if by, why := fixture.ModelServed(t, plain, map[string]func(string) []float32{"new": is}); by != "new" {
		t.Error(why)
	}
}
