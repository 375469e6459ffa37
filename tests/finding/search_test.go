package finding

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
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/search"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	view "github.com/varve-db/varve/internal/view/words"
	"github.com/varve-db/varve/internal/words"
	"github.com/varve-db/varve/internal/words/analyzer"
	"github.com/varve-db/varve/internal/words/build"
	"github.com/varve-db/varve/internal/words/query"
)

// ranked returns the result of one segment with all memories.
func ranked(t *testing.T, st *varve.Store, all map[string]varve.Memory, q varve.Query,
	filters ...varve.Filter) (ids []string) {
	t.Helper()
	an := analyzer.New(analyzer.English)
	b := build.NewBuilder(an)
	for _, m := range all {
		b.Add(view.DocOf(&m, m.Version, query.DefaultSources()))
	}
	data := b.Segment()
	if data == nil {
		return nil
	}
	seg, err := words.OpenSegment(data)
	if err != nil {
		t.Fatal(err)
	}
	set, err := words.NewSet().With(1, seg, nil)
	if err != nil {
		t.Fatal(err)
	}
	pass := map[string]bool{}
	for m, err := range st.Memories(context.Background(), filters...) {
		if err != nil {
			t.Fatal(err)
		}
		pass[m.ID] = true
	}
	least := cmp.Or(q.MinScore, math.Inf(-1))
	hits, err := set.Search(t.Context(), query.Parse(q.Text, an), words.Filter{}, q.Offset+cmp.Or(q.Limit, 10), least,
		func(h words.Hit) (bool, error) { return pass[h.ID], nil })
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hits[min(q.Offset, len(hits)):] {
		ids = append(ids, h.ID)
	}
	return ids
}

// A search finds what the formula finds, wherever the memories are: in the log, compressed there, in
// files, edited files, in index, delta and overlay.
func TestSearchText(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	seed := proofs.Seed(t, 0)
	r := rand.New(rand.NewPCG(seed, 2))
	for _, inline := range []bool{false, true} {
		dir := t.TempDir()
		o := storetest.In(&varve.Options{NoBackground: true},
			storetest.Environment{System: vfs.System{SpillBytes: 32 << 10, Inline: inline}})
		st := fixture.Open(t, dir, o)
		ctx := context.Background()
		all := map[string]varve.Memory{}
		word := func() string {
			return []string{"alpha", "Beta", "gamma\n", "\"delta\"", "東京", "épsilon", "x", "the"}[int(r.ExpFloat64()*2)%8]
		}
		check := func(what string) {
			t.Helper()
			for _, filters := range [][]varve.Filter{nil, {varve.InSession("s1")}, {varve.InCategory("c0")},
				{varve.WithPrefix("m1"), varve.Since(time.Unix(0, 0))}, {varve.InSession("none")}} {
				q := varve.Query{Text: strings.TrimSpace(word() + " " + word()), Limit: r.IntN(12), Offset: r.IntN(3),
					MinScore: 2 * r.Float64() * float64(r.IntN(2))}
				hits, err := st.Search(ctx, q, filters...)
				if err != nil {
					t.Fatal(what, err)
				}
				if got, want := fixture.IdsOf(hits), ranked(t, st, all, q, filters...); !slices.Equal(got, want) {
					t.Fatalf("seed %d, %s, %+v: %q, want %q", seed, what, q, got, want)
				}
			}
		}
		check("nothing")
		for round := range 6 {
			for range 60 {
				id := fmt.Sprint("m", r.IntN(200))
				if r.IntN(8) == 0 {
					if err := st.Delete(ctx, id); err == nil {
						delete(all, id)
					} else if !errors.Is(err, varve.ErrNotFound) { // for an expired one the error says so, and it counts
						t.Fatal(err)
					}
					continue
				}
				var s []string
				for range r.IntN(20) * (1 + 40*(r.IntN(9)/8)) {
					s = append(s, word())
				}
				m := varve.Memory{ID: id, Content: strings.Join(s, " "),
					Metadata: map[string]any{"session_id": fmt.Sprint("s", r.IntN(3)), "category": fmt.Sprint("c", r.IntN(2))}}
				if r.IntN(20) == 0 {
					m.ExpiresAt = time.Now().Add(-time.Second)
				}
				m, err := st.Put(ctx, m)
				if err != nil {
					t.Fatal(err)
				}
				all[id] = m
			}
			check(fmt.Sprint("put ", round))
			if round%2 == 0 {
				if err := st.Flush(ctx); err != nil {
					t.Fatal(err)
				}
				check(fmt.Sprint("flushed ", round))
			}
		}
		if err := st.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		for m := range st.Memories(ctx) { // one is edited by hand
			path := filepath.Join(dir, "memories", jsondoc.FileName(m.ID))
			m.Content = "zebra zebra"
			doc, err := m.Encode(kind.Stored)
			if err == nil {
				err = os.WriteFile(path, doc, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			// A search does not read the files: it finds what a read has adopted.
			if _, err := fixture.Open(t, dir, o).Get(ctx, m.ID); err != nil {
				t.Fatal(err)
			}
			if hits, err := st.Search(ctx,
				varve.Query{Text: "ZEBRA"}); err != nil || len(hits) == 0 || hits[0].ID != m.ID ||
				hits[0].Memory.Content != "zebra zebra" {
				t.Fatalf("edited: %+v, %v", hits, err)
			} else {
				all[m.ID] = hits[0].Memory
			}
			break
		}
		check("edited")
	}
}

// A memory that cannot be read is named, and the others are found.
func TestSearchTextOfDamage(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir, want := fixture.Aged(t)
	if err := os.RemoveAll(filepath.Join(dir, "wal", "archive")); err != nil {
		t.Fatal(err)
	}
	victim, oldest := "", uint64(1<<60)
	for id, m := range want { // the log has it no more
		if m.Version < oldest {
			victim, oldest = id, m.Version
		}
	}
	word := strings.Fields(want[victim].Content)[0]
	fixture.Alter(t, filepath.Join(dir, "memories", victim+".json"), func(b []byte) []byte { return b[:len(b)/2] })
	st := fixture.Open(t, dir, fixture.SmallLog)
	hits, err := st.Search(ctx, varve.Query{Text: word, Limit: len(want)})
	if err == nil || !strings.Contains(err.Error(), victim) || slices.Contains(fixture.IdsOf(hits), victim) {
		t.Fatalf("%d hits, %v", len(hits), err)
	}
	found := fixture.IdsOf(hits)
	for id, m := range want { // and neighbours of these
		if id != victim && strings.Contains(strings.ToLower(m.Content), strings.ToLower(word)) != slices.Contains(found,
			id) && !slices.Contains(found, id) {
			t.Errorf("%s is not found for %q", id, word)
		}
	}
}

func TestSearchRefuses(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st := fixture.Open(t, t.TempDir(), &varve.Options{NoBackground: true})
	nan := math.NaN()
	for _, q := range []varve.Query{
		{}, {Text: "a", Like: "b"}, {Text: "a", Vector: []float32{1}, Like: "b"}, {Text: "a", Vector: []float32{}},
		{Vector: []float32{}}, {Vector: []float32{1, float32(nan)}},
		{Vector: []float32{float32(math.Inf(-1))}}, {Text: "a", Limit: -1}, {Text: "a", Offset: -1},
		{Text: "a", MinScore: nan},
		{Text: "a", MinScore: math.Inf(1)}, {Text: "?!"}, {Text: "a", Limit: math.MaxInt, Offset: math.MaxInt},
		{Text: "a", Offset: search.MostHits},
	} {
		var field *varve.FieldError
		if hits, err := st.Search(ctx, q); !errors.Is(err, varve.ErrInvalid) || !errors.As(err, &field) || hits != nil {
			t.Errorf("%+v: %v, %v", q, hits, err)
		}
	}
	var many strings.Builder
	for i := range query.MostWords + 1 {
		fmt.Fprint(&many, i, " ")
	}
	if _, err := st.Search(ctx, varve.Query{Text: many.String()}); !errors.Is(err, varve.ErrInvalid) {
		t.Error(err)
	}
	if _, err := st.Search(ctx, varve.Query{Like: "nobody"}); !errors.Is(err, varve.ErrNotFound) {
		t.Error(err)
	}
	if _, err := st.Put(ctx, varve.Memory{ID: "plain"}); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Search(ctx, varve.Query{Like: "plain"}); !errors.Is(err, varve.ErrInvalid) {
		t.Error(err)
	}
	if _, err := st.Put(ctx, varve.Memory{ID: "zero", Embedding: make([]float32, 2)}); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Search(ctx, varve.Query{Like: "zero"}); !errors.Is(err,
		varve.ErrInvalid) || !strings.Contains(err.Error(), "all zero") {
		t.Error(err)
	}
	ended, end := context.WithCancel(ctx)
	end()
	if _, err := st.Search(ended, varve.Query{Text: "a"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Search(ctx, varve.Query{Text: "a"}); !errors.Is(err, varve.ErrClosed) {
		t.Error(err)
	}
}
