package finding

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// TestExplain: the parts in a hit's explanation add up to its score, to the last bit, and are named at
// their places.
func TestExplain(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st := fixture.Open(t, t.TempDir(), nil)
	at := time.Date(2024, 5, 6, 8, 0, 0, 0, time.UTC)
	for i, m := range []varve.Memory{
		{ID: "ferry", Content: "the ferry to Bellagio",
			Metadata: map[string]any{"session_id": "trip", "tags": []any{"lake", "ferry"}}, Embedding: []float32{1, 0}},
		{ID: "late", Content: "it came late", Metadata: map[string]any{"session_id": "trip"}, Embedding: []float32{0, 1}},
		{ID: "other", Content: "a lake in the north, and a boat", Embedding: []float32{1, 1}},
		{ID: "more", Content: "nothing of the kind"},
	} {
		m.Timestamp = at.Add(time.Duration(i) * time.Minute)
		if _, err := st.Put(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 2 { // from the overlay, from segments
		hits, err := st.Search(ctx, varve.Query{Text: "lake ferries -snow late", Explain: true, Fragment: 40})
		if err != nil || len(hits) != 3 {
			t.Fatal(hits, err)
		}
		for _, h := range hits {
			own := 0.0
			said := map[string]string{}
			for _, w := range h.Explanation.Words {
				own += w.Score
				said[w.Word] = fmt.Sprintf("%v %.1f", w.Fields, w.Near)
				if w.Score <= 0 || w.Near < 0 || w.Near > 1 {
					t.Errorf("%s: %+v", h.ID, w)
				}
			}
			if own != h.Explanation.Own || own+h.Explanation.Session != h.Score || h.Explanation.Similarity != 0 {
				t.Errorf("round %d: %s: the score is %v, and explained as %+v", round, h.ID, h.Score, h.Explanation)
			}
			want := map[string]map[string]string{
				"ferry": {"lake": "[tag] 0.0", "ferri": "[content tag] 0.0", "late": "[] 1.0"},
				"late":  {"ferri": "[] 1.0", "late": "[content] 0.0"},
				"other": {"lake": "[content] 0.0"},
			}[h.ID]
			if fmt.Sprint(said) != fmt.Sprint(want) {
				t.Errorf("round %d: %s: %v, want %v", round, h.ID, said, want)
			}
			if f := h.Fragment; f == nil || f.Text != h.Memory.Content ||
				h.ID == "other" && !slices.Equal(f.Marks, [][2]int{{2, 6}}) {
				t.Errorf("%s: %+v", h.ID, f)
			}
		}
		both, err := st.Search(ctx, varve.Query{Text: "lake", Vector: []float32{1, 0}, Explain: true})
		if err != nil || len(both) == 0 {
			t.Fatal(both, err)
		}
		for _, h := range both {
			if e := h.Explanation; h.Words > 0 != (e.Own+e.Session > 0) || h.ID == "ferry" && e.Similarity != 1 {
				t.Errorf("%+v: %+v", h, e)
			}
		}
		plain, err := st.Search(ctx, varve.Query{Text: "lake"})
		if err != nil || plain[0].Explanation != nil || plain[0].Fragment != nil {
			t.Errorf("%+v, %v", plain, err)
		}
		if err := st.Flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := st.Search(ctx, varve.Query{Text: "x", Fragment: 1 << 20}); err == nil {
		t.Error("a fragment of a MiB")
	}
}
