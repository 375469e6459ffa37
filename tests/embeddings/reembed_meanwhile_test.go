package embeddings

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// A memory that is put during a re-embedding ends with a vector of its model, whichever process put it,
// and that vector is never among those of the previous model.
func TestPutWhileReembedding(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	was, is := fixture.ModelOf("old", 3), fixture.ModelOf("new", 3)
	asks := func(model string, of func(string) []float32) (*varve.Store, *fixture.Embedder) {
		e := &fixture.Embedder{}
		e.Set(fixture.AnswerBy(of))
		return fixture.Open(t, dir, &varve.Options{NoBackground: true, Embed: e.Embed, EmbedModel: model, EmbedBatch: 2}), e
	}
	old, _ := asks("old", was)
	for _, id := range []string{"a", "b", "c", "d"} {
		if _, err := old.Put(ctx, varve.Memory{ID: id, Content: "text " + id}); err != nil {
			t.Fatal(err)
		}
	}
	st, e := asks("new", is)
	other, _ := asks("new", is) // another process that already has the new model
	mine, err := other.Get(ctx, "d")
	if err != nil {
		t.Fatal(err)
	}
	models := map[string]func(string) []float32{"old": was, "new": is}
	has := func(id string, of func(string) []float32) {
		t.Helper()
		m, err := st.Get(ctx, id)
		var want []float32
		if of != nil {
			want = of(m.Content)
		}
		if err != nil || !slices.Equal(m.Embedding, want) {
			t.Errorf("%s %q has %v, want %v, %v", id, m.Content, m.Embedding, want, err)
		}
	}
	// Before anything was announced its model is not the store's: the memory is pending.
	if _, err := other.Put(ctx, varve.Memory{ID: "early", Content: "text early"}); err != nil {
		t.Fatal(err)
	}
	has("early", nil)
	var me *varve.ModelError
	if _, err := other.Vectors().EmbedPending(ctx); !errors.As(err,
		&me) || me.Model != "old" || me.Other != "new" || me.Next != "" {
		t.Fatal(err)
	}
	if h := other.Health(ctx); h.Pending != 1 || h.OK {
		t.Errorf("%+v", h)
	}
	asked := 0
	e.Set(func(texts []string) ([][]float32, error) {
		if asked++; asked == 2 {
			if _, err := other.Put(ctx, varve.Memory{ID: "e", Content: "text e"}); err != nil {
				t.Error(err)
			}
			has("e", nil)
			if _, err := other.Vectors().EmbedPending(ctx); !errors.As(err, &me) || me.Next != "new" {
				t.Error(err)
			}
			if s := old.Admin().Stats(); s.Model != "old" || s.NextModel != "new" || s.Switching {
				t.Errorf("%+v", s)
			}
			if _, err := old.Put(ctx, varve.Memory{ID: "a", Content: "changed by the old"}); err != nil {
				t.Error(err)
			}
			has("a", was)
		}
		return fixture.AnswerBy(is)(texts)
	})
	wrote := false
	r, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{Progress: func(r varve.ReembedReport) {
		if r.Written == 0 || wrote {
			return
		}
		wrote = true
		if s := old.Admin().Stats(); s.Model != "new" || !s.Switching {
			t.Errorf("%+v", s)
		}
		// Now no store uses the old model anymore.
		if _, err := old.Put(ctx, varve.Memory{ID: "late", Content: "text late"}); err != nil {
			t.Error(err)
		}
		has("late", nil)
		if _, err := other.Put(ctx, varve.Memory{ID: "f", Content: "text f"}); err != nil {
			t.Error(err)
		}
		has("f", is)
		mine.Metadata = map[string]any{"put": "back"} // with the vector that it had before
		if _, err := other.Put(ctx, mine); err != nil {
			t.Error(err)
		}
		has("d", is)
		if by, why := fixture.ModelServed(t, other, map[string]func(string) []float32{"new": func(text string) []float32 {
			if text == "text late" {
				return nil
			}
			return is(text)
		}}); by == "" {
			t.Error(why)
		}
	}})
	if err != nil {
		t.Fatal(r, err)
	}
	if by, why := fixture.ModelServed(t, old, models); by != "new" {
		t.Fatal(why)
	}
	for _, id := range []string{"a", "b", "c", "d", "e", "f", "early", "late"} {
		has(id, is)
	}
	// A copy from before may be put back much later, reworded or not.
	mine.Content = "reworded"
	if _, err := other.Put(ctx, mine); err != nil {
		t.Fatal(err)
	}
	has("d", is)
	if m, err := st.Get(ctx, "d"); err != nil || m.Content != "reworded" || m.Metadata["put"] != "back" {
		t.Error(m, err)
	}
}

// A memory that was read is put back with another content, while the stored one has changed: the
// embedding that was read does not belong to this content.
func TestEmbedReworded(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	e := &fixture.Embedder{}
	st := fixture.Open(t, t.TempDir(), &varve.Options{NoBackground: true, Embed: e.Embed})
	m, err := st.Put(ctx, varve.Memory{ID: "m", Content: "one"})
	if err == nil {
		m, err = st.Get(ctx, "m")
	}
	if err == nil {
		_, err = st.Put(ctx, varve.Memory{ID: "m", Content: "three"})
	}
	if err != nil {
		t.Fatal(err)
	}
	m.Content = "seventeen"
	if m, err = st.Put(ctx, m); err != nil || !slices.Equal(m.Embedding, fixture.EmbeddingOf("seventeen")) {
		t.Error(m.Embedding, err)
	}
}

// An embedding that the store fills in does not count as an update by the user.
func TestEmbeddingKeepsUpdatedAt(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	e := &fixture.Embedder{}
	st := fixture.Open(t, t.TempDir(), &varve.Options{NoBackground: true, Embed: e.Embed, Clock: fixture.Secondly()})
	e.Set(func([]string) ([][]float32, error) { return nil, errors.New("not now") })
	was, err := st.Put(ctx, varve.Memory{ID: "m", Content: "one"})
	if err != nil {
		t.Fatal(err)
	}
	e.Set(nil)
	if n, err := st.Vectors().EmbedPending(ctx); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	m, err := st.Get(ctx, "m")
	if err != nil || len(m.Embedding) == 0 || !m.UpdatedAt.Equal(was.UpdatedAt) || m.Version == was.Version {
		t.Fatalf("%+v, was %+v, %v", m, was, err)
	}
	// A caller that has read it before may write on the condition of the time, and not of the version.
	// The vector stays.
	if _, err := st.Put(ctx, was, varve.IfVersion(was.Version)); !errors.Is(err, varve.ErrConflict) {
		t.Error(err)
	}
	m, err = st.Put(ctx, varve.Memory{ID: "m", Content: "one", AccessCount: 1}, varve.IfUnmodifiedSince(was.UpdatedAt))
	if err != nil || !slices.Equal(m.Embedding, fixture.EmbeddingOf("one")) || !m.UpdatedAt.After(was.UpdatedAt) {
		t.Error(m, err)
	}
}

// A process with the previous model continues to put memories that only the new model can embed, faster
// than they are embedded: the run ends nevertheless, and the rest is pending.
func TestReembedEndsBesideWriter(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	asks := func(model string) *varve.Store {
		e := &fixture.Embedder{}
		e.Set(fixture.AnswerBy(fixture.ModelOf(model, 3)))
		return fixture.Open(t, dir, &varve.Options{NoBackground: true, Embed: e.Embed, EmbedModel: model, EmbedBatch: 2})
	}
	old := asks("old")
	for _, id := range []string{"a", "b", "c"} {
		if _, err := old.Put(ctx, varve.Memory{ID: id, Content: "text " + id}); err != nil {
			t.Fatal(err)
		}
	}
	st := asks("new")
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	put := 0
	r, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{Progress: func(r varve.ReembedReport) {
		if r.Written == 0 {
			return
		}
		if put++; put == 100 {
			stop()
		}
		if _, err := old.Put(ctx, varve.Memory{ID: fmt.Sprint("late", put), Content: "text"}); err != nil {
			t.Error(err)
		}
	}})
	if err != nil || put == 0 {
		t.Fatalf("it did not end: %d memories were put meanwhile, %+v, %v", put, r, err)
	}
	s := st.Admin().Stats()
	if s.Model != "new" || s.Switching {
		t.Errorf("%+v", s)
	}
	if n, err := st.Vectors().EmbedPending(ctx); err != nil || n == 0 {
		t.Errorf("%d were pending: %v", n, err)
	}
	for m, err := range st.Memories(ctx) {
		if err != nil || !slices.Equal(m.Embedding, fixture.ModelOf("new", 3)(m.Content)) {
			t.Error(m.ID, m.Embedding, err)
		}
	}
}
