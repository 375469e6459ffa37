package finding

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// TestPerSession: the requested number of hits per session is found, the best of each, in the order that
// they have among all, even if a session has more of the best than are examined first; pages continue
// one another.
func TestPerSession(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st := fixture.Open(t, t.TempDir(), nil)
	var all []varve.Memory
	for s := range 5 {
		for i := range 60 {
			session := fmt.Sprint("s", s)
			if s == 4 {
				session = "" // of no session
			}
			m := varve.Memory{ID: fmt.Sprintf("m%d-%02d", s, i), Content: fmt.Sprint("the ferry", i),
				Embedding: []float32{1, float32(s*100 + i)}, QuickRecalScore: float64(i%3) / 2}
			if session != "" {
				m.Metadata = map[string]any{"session_id": session}
			}
			all = append(all, m)
		}
	}
	if _, err := st.PutAll(ctx, slices.Values(all)); err != nil {
		t.Fatal(err)
	}
	for name, q := range map[string]varve.Query{"words": {Text: "ferry 7"}, "raised": {Text: "ferry 7", Importance: 1},
		"vector": {Vector: []float32{1, 0}}, "like": {Like: "m0-00"}, "both": {Text: "ferry", Vector: []float32{1, 0}}} {
		q.Limit = 400
		ranked, err := st.Search(ctx, q)
		if err != nil {
			t.Fatal(name, err)
		}
		for _, most := range []int{1, 2, 7} {
			var want []string
			seen := map[string]int{}
			for _, h := range ranked {
				s := h.Memory.Session()
				if seen[s]++; s == "" || seen[s] <= most {
					want = append(want, h.ID)
				}
			}
			varied := q
			varied.PerSession = most
			var got []string
			for varied.Limit = 6; len(got) < len(want); varied.Offset += 6 {
				hits, err := st.Search(ctx, varied)
				if err != nil || len(hits) == 0 || len(hits) > 6 {
					t.Fatal(name, most, len(got), len(want), hits, err)
				}
				for _, h := range hits {
					got = append(got, h.ID)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, %d of a session: %v, want %v", name, most, got, want)
			}
		}
	}
	if _, err := st.Search(ctx, varve.Query{Text: "x", PerSession: -1}); err == nil {
		t.Error("a negative number")
	}
}
