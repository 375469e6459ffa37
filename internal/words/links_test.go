package words

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/words/analyzer"
	"github.com/varve-db/varve/internal/words/query"
)

// TestLinks: a search that looks for the neighbours of many rows, for which it makes a table of the links, finds the
// same neighbours as Set.next does in a map. The sessions are spread over several segments, and rows are dead.
func TestLinks(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(proofs.Seed(t, 0), 1))
	an := analyzer.New(analyzer.None)
	set := NewSet()
	for part := range uint64(5) {
		var docs []*Doc
		for i := range 50 + rng.IntN(200) {
			docs = append(docs, &Doc{ID: fmt.Sprint(part, "-", i), LSN: part*1000 + uint64(i),
				Session: []string{"", "a", "b", "c"}[rng.IntN(4)], Time: rng.Int64N(100),
				Texts: []query.Text{{Text: "word"}}})
		}
		var remove []string
		for range 30 {
			remove = append(remove, fmt.Sprint(rng.Uint64N(part+1), "-", rng.IntN(100)))
		}
		var err error
		if set, err = set.With(part+1, segmentOf(t, an, docs...), remove); err != nil {
			t.Fatal(err)
		}
	}
	prepared := func(set *Set) *search {
		t.Helper()
		s, err := set.prepare(t.Context(), query.Plain("word", an), &Filter{})
		if err != nil {
			t.Fatal(err)
		}
		pass, err := s.pass(nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range set.parts {
			if err := pass.link(i, p.Seg.Rows); err != nil {
				t.Fatal(err)
			}
		}
		return pass
	}
	pass := prepared(set)
	defer pass.release()
	linked := 0
	for i, p := range set.parts {
		if len(p.links) > 0 && pass.scratch[i].links == nil {
			t.Errorf("no table of %d links", len(p.links))
		}
		linked += len(p.links)
		for r := range uint32(p.Seg.Rows) {
			for _, before := range [...]bool{true, false} {
				if p.dead.Has(r) {
					continue
				}
				want, has, err := set.next(place{i, r}, before)
				got, ok, err2 := pass.neighbour(place{i, r}, before)
				if err = errors.Join(err, err2); err != nil || ok != has || ok && got != want {
					t.Fatalf("row %d of part %d, before %v: %v, %v, want %v, %v (%v)", r, p.ID, before, got, ok,
						want, has, err)
				}
			}
		}
	}
	if linked < 100 {
		t.Errorf("only %d links", linked)
	}
	// A link to a part that the set does not have is damage.
	less := &edit{NewSet()}
	for _, p := range set.parts[:4] {
		less.add(p)
	}
	pass = prepared(less.Set)
	defer pass.release()
	broken := 0
	for i, p := range less.parts {
		for r := range p.links {
			for _, before := range [...]bool{true, false} {
				_, _, want := less.next(place{i, r}, before)
				_, _, err := pass.neighbour(place{i, r}, before)
				if fmt.Sprint(err) != fmt.Sprint(want) {
					t.Fatalf("%v, want %v", err, want)
				}
				if errors.Is(err, errs.ErrCorrupt) {
					broken++
				}
			}
		}
	}
	if broken == 0 {
		t.Error("no link to the missing part")
	}
}
