package varve

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/varve-db/varve/internal/view/vectors"
)

// A re-embedding whose process is gone for ever is called off by another one, which has
// no embedder; behind the switch it only goes on.
func TestCancelReembed(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	e := &teller{}
	open := func(model string) *Store {
		return openTest(t, dir, &Options{NoBackground: true, Embed: e.embed, EmbedModel: model, EmbedBatch: 2})
	}
	was, is := modelOf("old", 3), modelOf("new", 3)
	e.set(asking(was))
	old := open("old")
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		if _, err := old.Put(ctx, Memory{ID: id, Content: "text " + id}); err != nil {
			t.Fatal(err)
		}
	}
	plain := openTest(t, dir, &Options{NoBackground: true})
	if model, err := plain.Vectors().CancelReembed(ctx); model != "" || err != nil {
		t.Fatalf("none was begun: %q, %v", model, err)
	}
	half := func(until func(ReembedReport) bool) {
		t.Helper()
		e.set(asking(is))
		st := open("new")
		ctx, end := context.WithCancel(ctx)
		_, err := st.Vectors().Reembed(ctx, ReembedOptions{Progress: func(r ReembedReport) {
			if until(r) {
				if _, err := plain.Vectors().CancelReembed(context.Background()); !errors.Is(err, ErrLocked) {
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
	half(func(r ReembedReport) bool { return r.Computed == 2 })
	if s := plain.Admin().Stats(); s.NextModel != "new" {
		t.Fatalf("%+v", s)
	}
	if model, err := plain.Vectors().CancelReembed(ctx); model != "new" || err != nil {
		t.Fatalf("%q, %v", model, err)
	}
	if s := plain.Admin().Stats(); s.NextModel != "" || s.Model != "old" {
		t.Errorf("%+v", s)
	}
	if _, err := os.Stat(plain.inner.Vectors.ComputedPath(vectors.ComputedName)); !errors.Is(err, os.ErrNotExist) {
		t.Error("what was computed is still there:", err)
	}
	if by, why := served(t, plain, map[string]func(string) []float32{"old": was}); by != "old" {
		t.Error(why)
	}
	half(func(r ReembedReport) bool { return r.Written > 0 })
	if _, err := plain.Vectors().CancelReembed(ctx); !errors.Is(err, ErrConflict) {
		t.Fatal("behind the switch:", err)
	}
	st := open("new")
	if _, err := st.Vectors().Reembed(ctx, ReembedOptions{}); err != nil {
		t.Fatal(err)
	}
	if by, why := served(t, plain, map[string]func(string) []float32{"new": is}); by != "new" {
		t.Error(why)
	}
}
