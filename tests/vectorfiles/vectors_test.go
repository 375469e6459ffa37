package vectorfiles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/vector"
)

// byCosine returns the ids of memories that pass, the nearest first, by the formula.
func byCosine(t testing.TB, st *varve.Store, v []float32, filters ...varve.Filter) (ids []string, scores []float64) {
	t.Helper()
	type hit struct {
		id    string
		score float64
	}
	var hits []hit
	for m, err := range st.Memories(context.Background(), filters...) {
		if err != nil {
			t.Fatal(err)
		}
		if len(m.Embedding) != len(v) || vector.Norm(m.Embedding) == 0 {
			continue
		}
		var dot float64
		for j := range v {
			dot += float64(v[j]) * float64(m.Embedding[j])
		}
		hits = append(hits, hit{m.ID, dot / vector.Norm(v) / vector.Norm(m.Embedding)})
	}
	slices.SortFunc(hits, func(a, b hit) int {
		if a.score != b.score {
			return int(math.Copysign(1, b.score-a.score))
		}
		return strings.Compare(a.id, b.id)
	})
	for _, h := range hits {
		ids, scores = append(ids, h.id), append(scores, h.score)
	}
	return ids, scores
}

func sameSearch(t testing.TB, st *varve.Store, what string, v []float32, q varve.Query, filters ...varve.Filter) {
	t.Helper()
	hits, err := st.Search(context.Background(), q, filters...)
	if err != nil {
		t.Fatal(what, err)
	}
	ids, scores := byCosine(t, st, v, filters...)
	if q.Like != "" {
		if i := slices.Index(ids, q.Like); i >= 0 {
			ids, scores = slices.Delete(ids, i, i+1), slices.Delete(scores, i, i+1)
		}
	}
	if q.MinScore != 0 {
		n := 0
		for n < len(scores) && scores[n] >= q.MinScore {
			n++
		}
		ids, scores = ids[:n], scores[:n]
	}
	from := min(q.Offset, len(ids))
	to := min(from+cmp.Or(q.Limit, 10), len(ids))
	ids, scores = ids[from:to], scores[from:to]
	if len(hits) != len(ids) {
		t.Fatalf("%s: %q, want %q", what, fixture.IdsOf(hits), ids)
	}
	for i, h := range hits {
		if math.Abs(h.Score-scores[i]) > 3e-6 || h.ID != h.Memory.ID ||
			h.ID != ids[i] && !(i+1 < len(scores) && math.Abs(scores[i+1]-scores[i]) < 3e-6 ||
				i > 0 && math.Abs(scores[i-1]-scores[i]) < 3e-6) {
			t.Fatalf("%s: hit %d is %s %v, want %s %v", what, i, h.ID, h.Score, ids[i], scores[i])
		}
	}
}

// TestSearchVector: a search finds what the formula finds, wherever the vectors
// are: in the log, in a delta, in the base; through filters, pages and scores;
// after memories were changed, deleted and put again.
func TestSearchVector(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	seed := proofs.Seed(t, 0)
	r := rand.New(rand.NewPCG(seed, 3))
	ctx := context.Background()
	const dim = 24
	for _, inline := range []bool{false, true} {
		dir := t.TempDir()
		o := storetest.In(&varve.Options{NoBackground: true},
			storetest.Environment{System: vfs.System{SpillBytes: 32 << 10, Inline: inline}})
		st := fixture.Open(t, dir, o)
		other := fixture.Open(t, dir, o)
		check := func(what string) {
			t.Helper()
			for _, st := range []*varve.Store{st, other} {
				for _, filters := range [][]varve.Filter{nil, {varve.InSession("s1")}, {varve.InCategory("c0")},
					{varve.WithPrefix("m1")}, {varve.After("m12")}, {varve.InSession("none")},
					{varve.InSession("s0"), varve.InCategory("c1")}} {
					v := fixture.RandomVector(r, dim)
					q := varve.Query{Vector: v, Limit: r.IntN(12), Offset: r.IntN(3), MinScore: r.Float64() * 0.3 * float64(r.IntN(2))}
					sameSearch(t, st, fmt.Sprintf("seed %d, %s, %+v", seed, what, q), v, q, filters...)
				}
			}
			if report, err := storetest.CheckVectors(ctx, st); err != nil || report.Drift() != 0 {
				t.Fatalf("seed %d, %s: %+v, %v", seed, what, report, err)
			}
		}
		check("nothing")
		for round := range 8 {
			for range 60 {
				id := fmt.Sprint("m", r.IntN(200))
				switch r.IntN(8) {
				case 0:
					if err := st.Delete(ctx, id); err != nil && !errors.Is(err, varve.ErrNotFound) {
						t.Fatal(err)
					}
					continue
				case 1: // its content changes, its vector does not
					if _, err := st.Update(ctx, id,
						func(m *varve.Memory) error { m.Content += "!"; return nil }); err != nil && !errors.Is(err, varve.ErrNotFound) {
						t.Fatal(err)
					}
					continue
				}
				m := varve.Memory{ID: id, Content: "x",
					Metadata: map[string]any{"session_id": fmt.Sprint("s", r.IntN(3)), "category": fmt.Sprint("c", r.IntN(2))}}
				switch r.IntN(10) {
				case 0:
				case 1:
					m.Embedding = make([]float32, dim)
				default:
					m.Embedding = fixture.RandomVector(r, dim)
				}
				if _, err := st.Put(ctx, m); err != nil {
					t.Fatal(err)
				}
			}
			check(fmt.Sprint("put ", round))
			var err error
			switch round % 4 {
			case 0, 1:
				err = st.Flush(ctx)
			case 2:
				err = st.Admin().Compact(ctx)
			}
			if err != nil {
				t.Fatal(err)
			}
			check(fmt.Sprint("flushed ", round))
		}
		for m := range st.Memories(ctx) {
			if vector.Norm(m.Embedding) != 0 {
				sameSearch(t, st, "like", m.Embedding, varve.Query{Like: m.ID, Limit: 5})
				break
			}
		}
	}
}

// TestEmbedFits: with VectorFit, what the embedder returns for a text to search by has the dimension of the store's
// vectors.
func TestEmbedFits(t *testing.T) {
	t.Parallel()
	st := fixture.Open(t, t.TempDir(), &varve.Options{NoBackground: true, VectorFit: true, EmbedModel: "wide",
		Embed: func(_ context.Context, texts []string) (list [][]float32, err error) {
			for range texts {
				list = append(list, []float32{1, 2, 3, 4, 5})
			}
			return list, nil
		}})
	if _, err := st.Put(t.Context(), varve.Memory{ID: "first", Embedding: []float32{1, 2, 3}}); err != nil {
		t.Fatal(err)
	}
	list, err := st.Vectors().Embed(t.Context(), []string{"one", "two"})
	if err != nil || len(list) != 2 || !slices.Equal(list[0], []float32{1, 2, 3}) {
		t.Fatal(list, err)
	}
	hits, err := st.Search(t.Context(), varve.Query{Vector: list[1]})
	if err != nil || len(hits) != 1 || hits[0].ID != "first" {
		t.Error(hits, err)
	}
}

// TestDimension: the first vector fixes the dimension, whichever caller brings it, and a vector that
// does not fit is refused with both numbers, or is made to fit, which is reported. FAILURES 45: vectors
// of a wrong dimension padded or cut silently.
func TestDimension(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	var fitted []varve.Event
	o := &varve.Options{NoBackground: true}
	a, b := fixture.Open(t, dir, o), fixture.Open(t, dir, o)
	fit := fixture.Open(t, dir, &varve.Options{NoBackground: true, VectorFit: true, Listener: func(e varve.Event) {
		if e.Kind == varve.EventFitted {
			fitted = append(fitted, e)
		}
	}})
	if _, err := a.Put(ctx, varve.Memory{ID: "none"}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Put(ctx, varve.Memory{ID: "nan", Embedding: []float32{1, float32(math.NaN())}}); !errors.Is(err,
		varve.ErrInvalid) || !strings.Contains(err.Error(), "embedding[1]") {
		t.Fatal(err)
	}
	if _, err := a.Put(ctx, varve.Memory{ID: "inf", Embedding: []float32{float32(math.Inf(-1))}}); !errors.Is(err,
		varve.ErrInvalid) || !strings.Contains(err.Error(), "embedding[0]") {
		t.Fatal(err)
	}
	if _, err := b.Put(ctx, varve.Memory{ID: "first", Embedding: []float32{1, 2, 3}}); err != nil {
		t.Fatal(err)
	}
	for _, st := range []*varve.Store{a, b} {
		_, err := st.Put(ctx, varve.Memory{ID: "wrong", Embedding: []float32{1, 2}})
		var field *varve.FieldError
		if !errors.As(err, &field) || !errors.Is(err, varve.ErrDimension) || !strings.Contains(err.Error(), "2 dimensions") ||
			!strings.Contains(err.Error(), "3 dimensions") {
			t.Fatal(err)
		}
		if _, err := st.Get(ctx, "wrong"); !errors.Is(err, varve.ErrNotFound) {
			t.Fatal(err)
		}
	}
	batch := new(varve.Batch)
	batch.Put(varve.Memory{ID: "x", Embedding: []float32{1, 2, 3}})
	batch.Put(varve.Memory{ID: "y", Embedding: []float32{1}})
	var at *varve.BatchError
	if err := a.Apply(ctx, batch); !errors.As(err, &at) || at.Index != 1 || !errors.Is(err, varve.ErrDimension) {
		t.Fatal(err)
	}
	given := []float32{1, 2, 3, 4, 5}
	m, err := fit.Put(ctx, varve.Memory{ID: "long", Embedding: given})
	if err != nil || !slices.Equal(m.Embedding, []float32{1, 2, 3}) || len(given) != 5 {
		t.Fatal(m.Embedding, err)
	}
	if m, err = fit.Put(ctx, varve.Memory{ID: "short", Embedding: []float32{7}}); err != nil || !slices.Equal(m.Embedding,
		[]float32{7, 0, 0}) {
		t.Fatal(m.Embedding, err)
	}
	if len(fitted) != 2 || fitted[0].ID != "long" || fitted[1].ID != "short" {
		t.Fatal(fitted)
	}
	// Also once only the index knows the dimension, and no process.
	if err := a.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	c := fixture.Open(t, dir, o)
	if _, err := c.Put(ctx, varve.Memory{ID: "wrong", Embedding: []float32{1, 2}}); !errors.Is(err, varve.ErrDimension) {
		t.Fatal(err)
	}
	if _, err := c.Search(ctx, varve.Query{Vector: []float32{1, 2}}); !errors.Is(err, varve.ErrDimension) {
		t.Fatal(err)
	}
}

// TestFirstVectors: two processes cannot fix two dimensions.
func TestFirstVectors(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for round := range 5 {
		dir := t.TempDir()
		var stores []*varve.Store
		for range 4 {
			stores = append(stores, fixture.Open(t, dir, &varve.Options{NoBackground: true}))
		}
		errs := make(chan error, len(stores))
		for i, st := range stores {
			go func() {
				_, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint(i), Embedding: make([]float32, i+1)})
				errs <- err
			}()
		}
		good := 0
		for range stores {
			switch err := <-errs; {
			case err == nil:
				good++
			case !errors.Is(err, varve.ErrDimension):
				t.Fatal(err)
			}
		}
		if good != 1 {
			t.Fatalf("round %d: %d dimensions were decided", round, good)
		}
	}
}

// TestMisfits: memories whose embedding has another dimension, from an import or
// an edited file, are stored and served, can be changed, and have no vector.
func TestMisfits(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	if _, err := st.Put(ctx, varve.Memory{ID: "a", Embedding: []float32{1, 2, 3}}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"b", "c"} {
		if _, err := st.Put(ctx, varve.Memory{ID: id, Embedding: []float32{1, 2}}, varve.AnyDimension()); err != nil {
			t.Fatal(err)
		}
	}
	m, err := st.Update(ctx, "b", func(m *varve.Memory) error { m.Content = "other"; return nil })
	if err != nil || !slices.Equal(m.Embedding, []float32{1, 2}) {
		t.Fatal(m, err)
	}
	if _, err := st.Update(ctx, "b", func(m *varve.Memory) error { m.Embedding[0] = 7; return nil }); !errors.Is(err,
		varve.ErrDimension) {
		t.Fatal(err)
	}
	// The first vector has decided, whatever there is more of, and in every process.
	for round := range 3 {
		switch round {
		case 1:
			if err := st.Flush(ctx); err != nil {
				t.Fatal(err)
			}
		case 2:
			if err := os.RemoveAll(filepath.Join(dir, vector.Folder)); err != nil {
				t.Fatal(err)
			}
		}
		st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
		if _, err := st.Put(ctx, varve.Memory{ID: "d", Embedding: []float32{3, 2}}); !errors.Is(err, varve.ErrDimension) {
			t.Fatal(round, err)
		}
		report, err := storetest.CheckVectors(ctx, st)
		if err != nil || report.Drift() != 0 || len(report.Misfits) != 2 || report.Vectors != 1 || report.Dimension != 3 {
			t.Fatal(round, report, err)
		}
	}
}

// TestVectorConfig: config.json sets metric and dimension, also later: then the vectors are rebuilt, and
// those that do not fit are omitted.
func TestVectorConfig(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	r := rand.New(rand.NewPCG(1, 2))
	config := func(c *varve.VectorConfig) error {
		now := st.Admin().Config()
		now.Vectors = c
		return st.Admin().SetConfig(now)
	}
	if err := config(&varve.VectorConfig{Metric: "cosine"}); !errors.Is(err, varve.ErrInvalid) {
		t.Fatal(err)
	}
	if err := config(&varve.VectorConfig{Dimension: 16}); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Put(ctx, varve.Memory{ID: "first", Embedding: fixture.RandomVector(r, 8)}); !errors.Is(err,
		varve.ErrDimension) {
		t.Fatal(err)
	}
	fixture.PutVectors(t, st, r, 0, 20)
	fixture.CheckVectors(t, st, "ip", 20)
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	m, err := st.Get(ctx, "m3")
	if err != nil {
		t.Fatal(err)
	}
	for _, flush := range []bool{false, true} {
		if err := config(&varve.VectorConfig{Dimension: 16, Metric: "l2", Model: "of the test"}); err != nil {
			t.Fatal(err)
		}
		if flush {
			fixture.PutVectors(t, st, r, 20, 21)
			if err := st.Flush(ctx); err != nil {
				t.Fatal(err)
			}
		}
		hits, err := st.Search(ctx, varve.Query{Vector: m.Embedding, Limit: 2})
		if err != nil || len(hits) != 2 || hits[0].ID != "m3" || hits[0].Score != 1 || hits[1].Score > 0.5 ||
			hits[1].Score <= 0 {
			t.Fatal(hits, err)
		}
		if s := st.Admin().Stats(); s.Metric != "l2" {
			t.Fatalf("%+v", s)
		}
		if err := config(&varve.VectorConfig{Dimension: 16, Metric: "ip"}); err != nil {
			t.Fatal(err)
		}
		if hits, err = st.Search(ctx,
			varve.Query{Vector: m.Embedding, Limit: 1}); err != nil || hits[0].ID != "m3" || hits[0].Score < 0.999 {
			t.Fatal(hits, err)
		}
	}
	if err := config(&varve.VectorConfig{Dimension: 8}); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Put(ctx, varve.Memory{ID: "eight", Embedding: fixture.RandomVector(r, 8)}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		report, err := storetest.CheckVectors(ctx, st)
		if err != nil || report.Drift() != 0 || report.Vectors != 1 || len(report.Misfits) != 21 || report.Dimension != 8 {
			t.Fatal(report, err)
		}
		if err := st.Flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
}
