package finding

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// TestBothPages: pages of a search by words and a vector continue one another, beyond the 200 of each
// side that are ranked together: each hit occurs once, with one score, and no hit of either side is
// missing.
func TestBothPages(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st := fixture.Open(t, t.TempDir(), nil)
	var all []varve.Memory
	for i := range 900 {
		m := varve.Memory{ID: fmt.Sprintf("m%03d", i), Content: "bread",
			Metadata: map[string]any{"session_id": fmt.Sprint("s", i%90)}}
		if i%3 != 0 {
			m.Content = fmt.Sprint("the ferry", i)
			for range i % 7 {
				m.Content += " ferry"
			}
		}
		if i%2 == 0 {
			m.Embedding = []float32{1, float32((i * 37) % 900), 3}
		}
		all = append(all, m)
	}
	if _, err := st.PutAll(ctx, slices.Values(all)); err != nil {
		t.Fatal(err)
	}
	const found = 750 // with the word or a vector
	for name, q := range map[string]varve.Query{"sums": {}, "share": {Share: 3}, "ranks": {RankFusion: true},
		"ranks and share": {RankFusion: true, Share: 1}, "few": {}} {
		q.Text, q.Vector = "ferry", []float32{1, 0, 0}
		if name == "few" {
			q.Text = `"ferry 7" OR "ferry 8"` // fewer than a window
		}
		q.Limit = 2000
		whole, err := st.Search(ctx, q)
		if err != nil || name != "few" && len(whole) != found {
			t.Fatal(name, len(whole), err)
		}
		seen := map[string]bool{}
		for i, h := range whole {
			if seen[h.ID] || i > 0 && h.Score > whole[i-1].Score || h.Score < 0 || h.Score > 1 {
				t.Fatal(name, i, h.ID, h.Score)
			}
			seen[h.ID] = true
		}
		for _, limit := range []int{7, 190, 399} {
			q.Limit = limit
			for q.Offset = 0; q.Offset <= len(whole); q.Offset += limit {
				page, err := st.Search(ctx, q)
				want := whole[q.Offset:min(q.Offset+limit, len(whole))]
				if err != nil || !slices.EqualFunc(page, want, func(a, b varve.Hit) bool {
					return a.ID == b.ID && a.Score == b.Score && a.Words == b.Words && a.Vector == b.Vector
				}) {
					t.Fatalf("%s: the page of %d behind %d is not that of the whole: %v", name, limit, q.Offset, err)
				}
			}
		}
		q.PerSession, q.Limit = 2, 2000
		sessions, want := map[string]int{}, []string(nil)
		for _, h := range whole {
			if s := h.Memory.Session(); sessions[s] < 2 {
				sessions[s]++
				want = append(want, h.ID)
			}
		}
		var got []string
		for q.Limit, q.Offset = 11, 0; ; q.Offset += q.Limit {
			page, err := st.Search(ctx, q)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			for _, h := range page {
				got = append(got, h.ID)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: two of a session: %v, want %v", name, got, want)
		}
		q.PerSession, q.Offset, q.Limit, q.MinScore = 0, 0, 2000, 1e-9
		some, err := st.Search(ctx, q)
		if err != nil || len(some) == 0 || name != "few" && len(some) > 400 {
			t.Error(name, len(some), err)
		}
	}
	var field *varve.FieldError
	for _, q := range []varve.Query{
		{Text: "ferry", PerSession: 1, Limit: 10_001}, {Text: "ferry", PerSession: 1, Offset: 9_995},
		{Text: "ferry", RankFusion: true}, {Vector: []float32{1, 0, 0}, RankFusion: true},
	} {
		if _, err := st.Search(ctx, q); !errors.As(err, &field) || !errors.Is(err, varve.ErrInvalid) {
			t.Errorf("%+v: %v", q, err)
		}
	}
	if _, err := st.Search(ctx, varve.Query{Text: "ferry", PerSession: 1, Offset: 9_990}); err != nil {
		t.Error(err)
	}
}
