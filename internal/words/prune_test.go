package words

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/words/analyzer"
	"github.com/varve-db/varve/internal/words/bitset"
	"github.com/varve-db/varve/internal/words/query"
)

// never are limits with which each search reads all rows, always those with which none does if it can avoid that.
var (
	never  = pruning{least: math.MaxInt, share: 1, rows: 1}
	always = pruning{least: 0, share: 1, rows: 1}
)

// TestPruned: a search that looks for common words in some sessions only gives the hits and the scores of one that
// looks for all words in all rows, to the bit.
func TestPruned(t *testing.T) {
	t.Parallel()
	first, pruned, searches := proofs.Seed(t, 0), 0, 0
	n, least := uint64(40), 4
	if proofs.Race() {
		n, least = 5, 8
	}
	for seed := first; seed < first+n; seed++ {
		p, s := prunedIsExact(t, seed)
		if pruned, searches = pruned+p, searches+s; t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d of %d searches were pruned", pruned, searches)
	if pruned < searches/least {
		t.Error("too few to tell anything")
	}
}

func prunedIsExact(t *testing.T, seed uint64) (pruned, searches int) {
	r := rand.New(rand.NewPCG(seed, 1))
	an := analyzer.New(analyzer.None)
	set := corpus(t, r, an)
	for range 60 {
		var text []string
		for range 1 + r.IntN(5) {
			w := skewed(r)
			switch r.IntN(24) {
			case 0:
				w = "-" + w
			case 1:
				w = "+" + w
			case 2:
				w = w[:2] + "*"
			case 3:
				w = "tag:" + w
			case 4:
				w = `"` + w + " " + skewed(r) + `"`
			case 5:
				w = "tag:" + w + " OR +" + skewed(r)
			}
			text = append(text, w)
		}
		q := query.Parse(strings.Join(text, " "), an)
		f := Filter{Each: sideBySide}
		if r.IntN(6) == 0 {
			from, before := int64(r.IntN(500)), int64(500+r.IntN(500))
			f.From, f.Before = &from, &before
		}
		if r.IntN(6) == 0 {
			f.Only = map[uint64]bitset.Set{}
			for _, p := range set.Parts() {
				only := bitset.New(p.Seg.Rows)
				for i := range only {
					only[i] = r.Uint64() & r.Uint64()
				}
				if r.IntN(3) > 0 {
					f.Only[p.ID] = only
				}
			}
		}
		if r.IntN(6) == 0 {
			f.Prefix = fmt.Sprintf("d%d", r.IntN(3))
		}
		if r.IntN(6) == 0 {
			f.Rarest = 1 + r.IntN(4)
		}
		if r.IntN(12) == 0 {
			odd := r.Uint64N(2)
			f.Judged = func(part uint64) bool { return part%2 == odd }
		}
		n, least := 1+r.IntN(15), math.Inf(-1)
		if r.IntN(5) == 0 {
			least = r.Float64() * 8
		}
		var accept func(h Hit) (bool, error)
		if r.IntN(3) == 0 {
			of := 1 + uint64(r.IntN(40))
			accept = func(h Hit) (bool, error) { return h.LSN%of == 0, nil }
		}
		find := func(limits pruning) []Hit {
			hits, err := set.search(t.Context(), q, &f, n, least, accept, limits)
			if err != nil {
				t.Fatal(err)
			}
			return hits
		}
		got, limited, want := find(always), find(pruning{1000, usual.share, usual.odds, usual.rows}), find(never)
		if !slices.Equal(got, want) || !slices.Equal(limited, want) {
			t.Errorf("%q, %+v, %d at least %v:\ngot  %v\nor   %v\nwant %v", text, f, n, least, got, limited, want)
			return pruned, searches
		}
		s, err := set.prepare(t.Context(), q, &f)
		if err != nil {
			t.Fatal(err)
		}
		_, ok, err := s.pruned(n, least, always)
		if err != nil {
			t.Fatal(err)
		}
		if searches++; ok {
			pruned++
		}
		explained(t, set, q, f, want)
	}
	return pruned, searches
}

// TestPrunedAtBounds: the word that is left out of the first pass is what makes a session the best one, by as little as
// the bounds allow.
func TestPrunedAtBounds(t *testing.T) {
	t.Parallel()
	pruned, all := 0, 0
	for times := 1; times < 8; times += 2 {
		for spread := 10; spread < 90; spread += 8 {
			for filler := 8; filler < 200; filler *= 3 {
				if all++; prunedAtBounds(t, times, spread, filler) {
					pruned++
				}
			}
		}
	}
	if pruned < all/8 {
		t.Errorf("%d of %d were pruned", pruned, all)
	}
}

// prunedAtBounds searches for a rare word, which a document has several times and another one in a long text, and for a
// word that other documents have, in particular those of the session of the long text. It reports whether the search
// was pruned.
func prunedAtBounds(t *testing.T, times, spread, filler int) bool {
	t.Helper()
	an := analyzer.New(analyzer.None)
	var docs []*Doc
	add := func(session, text string) {
		n := len(docs)
		docs = append(docs, inContent(fmt.Sprintf("d%04d", n), session, text, int64(n)))
	}
	add("first", strings.Repeat("rare ", times)+"and other words")
	for range 3 {
		add("second", strings.Repeat("common ", 40))
	}
	add("second", "rare"+strings.Repeat(" filler", filler))
	for i := range spread {
		add(fmt.Sprint("t", i), strings.Repeat("common ", i%40+1)+strings.Repeat("filler ", i%7*20))
	}
	for i := range 300 {
		add(fmt.Sprint("u", i), "filler")
	}
	set, err := NewSet().With(1, segmentOf(t, an, docs...), nil)
	if err != nil {
		t.Fatal(err)
	}
	q := query.Parse("common rare", an)
	find := func(limits pruning) []Hit {
		hits, err := set.search(t.Context(), q, &Filter{}, 1, 0, nil, limits)
		if err != nil {
			t.Fatal(err)
		}
		return hits
	}
	if got, want := find(always), find(never); !slices.Equal(got, want) {
		t.Errorf("%d times, %d documents, %d other words: got %v, want %v", times, spread, filler, got, want)
	}
	s, err := set.prepare(t.Context(), q, &Filter{})
	if err != nil {
		t.Fatal(err)
	}
	_, ok, err := s.pruned(1, 0, always)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

// explained compares the shares of words with the scores that they add up to, and with the bounds of the words.
func explained(t *testing.T, set *Set, q *query.Query, f Filter, hits []Hit) {
	t.Helper()
	shares, err := set.Explain(t.Context(), q, f, hits)
	if err != nil {
		t.Fatal(err)
	}
	of, err := set.prepare(t.Context(), q, &f)
	if err != nil {
		t.Fatal(err)
	}
	plan := of.plan(usual)
	for i, h := range hits {
		sum := 0.0
		for _, s := range shares[i] {
			sum += s.Score
			if k := slices.Index(plan.later, s.Word); k >= 0 && s.Score > plan.most[k]*slack {
				t.Errorf("%+v: word %d adds %v, more than %v", h, s.Word, s.Score, plan.most[k])
			}
		}
		if math.Abs(sum-h.Parts.Own) > 1e-9 {
			t.Errorf("%+v: the words add up to %v: %v", h, sum, shares[i])
		}
	}
}

// skewed returns a word, of which few are in many documents and many in few.
func skewed(r *rand.Rand) string {
	n := int(math.Pow(400, r.Float64())) - 1
	return fmt.Sprintf("%c%cword%d", 'a'+n%5, 'a'+n%7, n)
}

// corpus returns a set of several parts, with sessions in several of them, dead rows and rows without a session.
func corpus(t *testing.T, r *rand.Rand, an *analyzer.Analyzer) *Set {
	t.Helper()
	set, lsn := NewSet(), uint64(0)
	sessions := 1 + r.IntN(300)
	for part := range 1 + r.IntN(4) {
		docs := map[string]*Doc{}
		for range 1 + r.IntN(1200) {
			lsn++
			id := fmt.Sprintf("d%04d", r.IntN(3000))
			d := &Doc{ID: id, LSN: lsn, Time: int64(r.IntN(1000))}
			if r.IntN(4) > 0 {
				d.Session = fmt.Sprintf("s%d", r.IntN(sessions))
			}
			var text []string
			for range r.IntN(14) {
				text = append(text, skewed(r))
			}
			d.Texts = append(d.Texts, query.Text{Field: query.Content, Text: strings.Join(text, " ")})
			if r.IntN(5) == 0 {
				d.Texts = append(d.Texts, query.Text{Field: query.Field(r.IntN(int(query.Fields))), Text: skewed(r)})
			}
			docs[id] = d
		}
		var list []*Doc
		for _, d := range docs {
			list = append(list, d)
		}
		var err error
		if set, err = set.With(uint64(part+1), segmentOf(t, an, list...), nil); err != nil {
			t.Fatal(err)
		}
	}
	return set
}

// TestPrunedOdds: a search begins with the rarest words only if that is likely to save more than it costs.
func TestPrunedOdds(t *testing.T) {
	t.Parallel()
	an := analyzer.New(analyzer.None)
	var docs []*Doc
	for i := range 12_000 {
		text := "filler"
		for _, w := range []struct {
			word  string
			every int
		}{{"rare", 500}, {"half", 2}, {"third", 3}, {"most", 1}} {
			if i%w.every == 0 {
				text += " " + w.word
			}
		}
		docs = append(docs, inContent(fmt.Sprintf("d%05d", i), fmt.Sprint("s", i/100), text, int64(i)))
	}
	set, err := NewSet().With(1, segmentOf(t, an, docs...), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text  string
		tries int
	}{{"rare half most", 1}, {"third half most", 0}, {"half third", 0}, {"most filler third", 1}} {
		s, err := set.prepare(t.Context(), query.Parse(c.text, an), &Filter{})
		if err != nil {
			t.Fatal(err)
		}
		if p := s.plan(usual); min(len(p.tries), 1) != c.tries {
			t.Errorf("%q: %+v", c.text, p)
		}
	}
}
