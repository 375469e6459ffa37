package varve

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestBoosts: scores are raised by what the explanation says, for what is new and what is important, in
// searches of each kind; pages continue one another, also behind the window; without them nothing changes.
func TestBoosts(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	st := openTest(t, t.TempDir(), &Options{Clock: func() time.Time { return now }})
	var all []Memory
	for i := range 450 {
		m := Memory{ID: fmt.Sprintf("m%03d", i), Content: "the ferry", Embedding: []float32{1, float32(i) / 100}, Timestamp: now.AddDate(0, 0, i-400)}
		for range i % 7 {
			m.Content += " leaves"
		}
		m.QuickRecalScore = []float64{0, 0.5, 1, 7, -3}[i%5]
		all = append(all, m)
	}
	if _, err := st.PutAll(ctx, slices.Values(all)); err != nil {
		t.Fatal(err)
	}
	for name, q := range map[string]Query{"words": {Text: "ferry"}, "vector": {Vector: []float32{1, 0}}, "opposite": {Vector: []float32{-1, 0}}, "like": {Like: "m000"}, "both": {Text: "ferry", Vector: []float32{1, 0}}} {
		q.Limit, q.Explain = 450, true
		plain, err := st.Search(ctx, q)
		if err != nil {
			t.Fatal(name, err)
		}
		q.Recency, q.HalfLife, q.Importance = 0.5, 7*24*time.Hour, 0.25
		want := map[string]float64{}
		for i, h := range plain {
			want[h.ID] = h.Score
			if i < 200 {
				age := max(now.Sub(h.Memory.Timestamp), 0).Hours() / 24 / 7
				important := min(max(h.Memory.QuickRecalScore, 0), 1)
				want[h.ID] += math.Abs(h.Score) * (0.5*math.Pow(2, -age) + 0.25*important)
			}
		}
		boosted, err := st.Search(ctx, q)
		if err != nil || len(boosted) != len(plain) {
			t.Fatal(name, len(boosted), err)
		}
		for i, h := range boosted {
			e := h.Explanation
			if math.Abs(h.Score-want[h.ID]) > 1e-9 || i > 0 && h.Score > boosted[i-1].Score || i >= 200 && h.ID != plain[i].ID {
				t.Fatalf("%s: hit %d, %s: %v, want %v: %+v", name, i, h.ID, h.Score, want[h.ID], e)
			}
			if i < 200 && h.Memory.Timestamp.After(now) && math.Abs(e.Recency-0.5*math.Abs(h.Score-e.Recency-e.Importance)) > 1e-9 {
				t.Errorf("%s: %s is of the future: %+v", name, h.ID, e)
			}
		}
		if boosted[0].ID == plain[0].ID && name == "words" {
			t.Errorf("%s: nothing changed", name)
		}
		paged := q
		for paged.Limit = 90; paged.Offset < len(boosted); paged.Offset += 90 {
			hits, err := st.Search(ctx, paged)
			if err != nil {
				t.Fatal(err)
			}
			for i, h := range hits {
				if b := boosted[paged.Offset+i]; h.ID != b.ID || h.Score != b.Score {
					t.Fatalf("%s: hit %d of pages is %s with %v, want %s with %v", name, paged.Offset+i, h.ID, h.Score, b.ID, b.Score)
				}
			}
		}
		q.MinScore, q.Limit = boosted[5].Score, 450
		if hits, err := st.Search(ctx, q); err != nil || len(hits) < 6 || hits[len(hits)-1].Score < q.MinScore || hits[0].Score != boosted[0].Score {
			t.Errorf("%s: %d hits of at least %v: %v", name, len(hits), q.MinScore, err)
		}
	}
}

// What boosts cannot be is refused, and a memory that cannot be read is named once and keeps no other out.
func TestBoostsRefused(t *testing.T) {
	t.Parallel()
	ctx, dir := context.Background(), t.TempDir()
	st := openTest(t, dir, &Options{NoBackground: true, CacheBytes: -1})
	for _, q := range []Query{{Recency: -1}, {Recency: math.NaN()}, {Importance: 1001}, {Importance: math.Inf(1)}, {HalfLife: time.Hour}, {Recency: 1, HalfLife: -1}} {
		q.Text = "ferry"
		var field *FieldError
		if _, err := st.Search(ctx, q); !errors.Is(err, ErrInvalid) || !errors.As(err, &field) {
			t.Errorf("%+v: %v", q, err)
		}
	}
	if _, err := st.Assemblies().Search(ctx, Query{Vector: []float32{1}, Recency: 1}); !errors.Is(err, ErrInvalid) {
		t.Errorf("of assemblies: %v", err)
	}
	for i := range 4 {
		if _, err := st.Put(ctx, Memory{ID: fmt.Sprint("m", i), Content: "the ferry"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "memories", "m2.json")
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(name, 0o700); err != nil { // and nothing to put back from is needed: it is refused
		t.Fatal(err)
	}
	hits, err := st.Search(ctx, Query{Text: "ferry", Recency: 1, Limit: 3})
	if len(hits) != 3 || err != nil && hits == nil {
		t.Errorf("%d hits, %v", len(hits), err)
	}
}
