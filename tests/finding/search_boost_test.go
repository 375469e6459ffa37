package finding

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/fault"
)

// TestBoosts: scores are raised for new and important memories by what the explanation says, in searches
// of each kind; pages continue one another, also behind the window; without boosts nothing changes.
func TestBoosts(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	st := fixture.Open(t, t.TempDir(), &varve.Options{Clock: func() time.Time { return now }})
	var all []varve.Memory
	for i := range 450 {
		m := varve.Memory{ID: fmt.Sprintf("m%03d", i), Content: "the ferry", Embedding: []float32{1, float32(i) / 100},
			Timestamp: now.AddDate(0, 0, i-400)}
		for range i % 7 {
			m.Content += " leaves"
		}
		m.QuickRecalScore = []float64{0, 0.5, 1, 7, -3}[i%5]
		all = append(all, m)
	}
	if _, err := st.PutAll(ctx, slices.Values(all)); err != nil {
		t.Fatal(err)
	}
	for name, q := range map[string]varve.Query{"words": {Text: "ferry"}, "vector": {Vector: []float32{1, 0}},
		"opposite": {Vector: []float32{-1, 0}}, "like": {Like: "m000"}, "both": {Text: "ferry", Vector: []float32{1, 0}}} {
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
				boost := 0.5*math.Pow(2, -age) + 0.25*important
				if want[h.ID] *= 1 + boost; h.Score < 0 {
					want[h.ID] = h.Score / (1 + boost)
				}
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
			if i < 200 && h.Score > 0 && h.Memory.Timestamp.After(now) &&
				math.Abs(e.Recency-0.5*(h.Score-e.Recency-e.Importance)) > 1e-9 {
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
		if hits, err := st.Search(ctx,
			q); err != nil || len(hits) < 6 || hits[len(hits)-1].Score < q.MinScore || hits[0].Score != boosted[0].Score {
			t.Errorf("%s: %d hits of at least %v: %v", name, len(hits), q.MinScore, err)
		}
	}
}

// Invalid boosts are refused.
func TestBoostsRefused(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st := fixture.Open(t, t.TempDir(), nil)
	for _, q := range []varve.Query{{Recency: -1}, {Recency: math.NaN()}, {Importance: 1001}, {Importance: math.Inf(1)},
		{HalfLife: time.Hour}, {Recency: 1, HalfLife: -1}} {
		q.Text = "ferry"
		var field *varve.FieldError
		if _, err := st.Search(ctx, q); !errors.Is(err, varve.ErrInvalid) || !errors.As(err, &field) {
			t.Errorf("%+v: %v", q, err)
		}
	}
	if _, err := st.Assemblies().Search(ctx, varve.Query{Vector: []float32{1}, Recency: 1}); !errors.Is(err,
		varve.ErrInvalid) {
		t.Errorf("of assemblies: %v", err)
	}
	for i, x := range []float32{0.3, -0.1, -1} {
		if _, err := st.Put(ctx,
			varve.Memory{ID: fmt.Sprint("m", i), Content: "the ferry",
				Embedding: []float32{x, float32(math.Sqrt(float64(1 - x*x)))}}); err != nil {
			t.Fatal(err)
		}
	}
	// New memories are raised, and not those least similar to it.
	for _, boost := range []float64{0, 1, 2, 1000} {
		hits, err := st.Search(ctx, varve.Query{Vector: []float32{1, 0}, Recency: boost})
		if err != nil || len(hits) != 3 || hits[0].ID != "m0" || hits[1].ID != "m1" || hits[2].ID != "m2" {
			t.Errorf("raised by up to %v: %+v, %v", boost, hits, err)
		}
	}
}

// A memory that cannot be read is named on its page, once, and does not exclude others.
func TestBoostsUnreadable(t *testing.T) {
	t.Parallel()
	ctx, dir := context.Background(), t.TempDir()
	st := fixture.Open(t, dir, nil)
	var all []varve.Memory
	for i := range 60 {
		all = append(all, varve.Memory{ID: fmt.Sprintf("m%02d", i), Content: "the ferry",
			Timestamp: time.Unix(1790000000, 0)})
	}
	if _, err := st.PutAll(ctx, slices.Values(all)); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	st = fixture.Open(t, dir, storetest.In(&varve.Options{NoBackground: true, CacheBytes: -1},
		storetest.Environment{System: unreadable("memories/m02.json")}))
	q := varve.Query{Text: "ferry", Limit: 5, Recency: 1}
	for ; q.Offset < 15; q.Offset += 5 {
		hits, err := st.Search(ctx, q)
		if named := err != nil && strings.Count(err.Error(), "m02") > 0; len(hits) != 5 || named != (q.Offset == 0) {
			t.Errorf("page at %d: %d hits, %v", q.Offset, len(hits), err)
		}
		for _, h := range hits {
			if h.ID == "m02" {
				t.Error("m02 was read")
			}
		}
	}
}

// A search by vectors is boosted even if the index of words cannot be read, using the documents.
func TestBoostsWithoutWords(t *testing.T) {
	t.Parallel()
	ctx, dir := context.Background(), t.TempDir()
	st := fixture.Open(t, dir, nil)
	for i := range 30 {
		if _, err := st.Put(ctx,
			varve.Memory{ID: fmt.Sprint("m", i), Content: "the ferry", Embedding: []float32{1, 0},
				QuickRecalScore: float64(i) / 100}); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	for _, broken := range []bool{false, true} {
		fsys := fault.New(vfs.OS(), func(op *fault.Op) error {
			if broken && strings.Contains(op.Path, "view_index") {
				return syscall.EIO
			}
			return nil
		})
		st := fixture.Open(t, dir, storetest.In(&varve.Options{NoBackground: true},
			storetest.Environment{System: vfs.System{FS: fsys}}))
		hits, err := st.Search(ctx, varve.Query{Vector: []float32{1, 0}, Importance: 1, Limit: 30})
		if err != nil || len(hits) != 30 || hits[0].ID != "m29" || hits[29].ID != "m0" ||
			math.Abs(hits[0].Score-1.29) > 1e-6 {
			t.Errorf("broken %v: %q, %v", broken, fixture.IdsOf(hits), err)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
