package edits

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
)

// A file from before a change of the model that returns by hand, from a checkout or an editor that had
// it open, does not put its vector among those of the new model.
func TestOlderFileBack(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, edit := range map[string]func([]byte) []byte{
		"checkout": func(b []byte) []byte { return b },
		"editor":   func(b []byte) []byte { return bytes.Replace(b, []byte("text a"), []byte("more of a"), 1) },
	} {
		for _, dim := range []int{3, 4} {
			dir := t.TempDir()
			was, is := fixture.ModelOf("old", 3), fixture.ModelOf("new", dim)
			e := &fixture.Embedder{}
			e.Set(fixture.AnswerBy(was))
			st := fixture.Open(t, dir, &varve.Options{NoBackground: true, Embed: e.Embed, EmbedModel: "old",
				Clock: fixture.Secondly()})
			if _, err := st.Put(ctx, varve.Memory{ID: "a", Content: "text a"}); err != nil {
				t.Fatal(err)
			}
			if err := st.Flush(ctx); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "memories", "a.json")
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
			e.Set(fixture.AnswerBy(is))
			st = fixture.Open(t, dir, &varve.Options{NoBackground: true, Embed: e.Embed, EmbedModel: "new",
				Clock: fixture.Secondly()})
			if _, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := st.Flush(ctx); err != nil {
				t.Fatal(err)
			}
			text := edit(before)
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			m, err := st.Get(ctx, "a")
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(m.Embedding, is("text a")) {
				t.Errorf("%s, %d dimensions: %q has %v, want %v; the older model's was %v", name, dim, m.Content, m.Embedding,
					is("text a"), was("text a"))
			}
			if want := map[string]string{"checkout": "text a", "editor": "more of a"}[name]; m.Content != want {
				t.Errorf("%s: content %q, want %q", name, m.Content, want)
			}
			if r, err := storetest.CheckVectors(ctx, st); err != nil || r.Drift() != 0 || r.Vectors != 1 || len(r.Misfits) != 0 {
				t.Errorf("%s: %+v, %v", name, r, err)
			}
			if err := st.Flush(ctx); err != nil {
				t.Fatal(err)
			}
			if b, err := os.ReadFile(path); err != nil || bytes.Equal(b, text) {
				t.Errorf("%s: the file still has the older vector: %v", name, err)
			}
			for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
				if err != nil || f.Severity > 0 {
					t.Errorf("verify: %+v, %v", f, err)
				}
			}
		}
	}
}
