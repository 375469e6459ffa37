package text

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// textbook ranks all texts as the formula in the package's comment says, with everything at hand.
func textbook(texts map[string]string, query string, least float64) []Hit {
	df, words, counts, lengths := map[string]float64{}, 0, map[string]map[string]float64{}, map[string]float64{}
	for id, s := range texts {
		counts[id] = map[string]float64{}
		for _, w := range strings.Fields(s) {
			counts[id][w]++
			words++
			lengths[id]++
		}
		for w := range counts[id] {
			df[w]++
		}
	}
	n, avg := float64(len(texts)), float64(words)/float64(len(texts))
	var hits []Hit
	for id := range texts {
		score, found := 0.0, false
		for _, w := range strings.Fields(query) {
			tf := counts[id][w]
			found = found || tf > 0
			idf := math.Log(1 + (n-df[w]+0.5)/(df[w]+0.5))
			score += idf * tf * 2.2 / (tf + 1.2*(1-0.75+0.75*lengths[id]/avg))
		}
		if found && score >= least {
			hits = append(hits, Hit{id, score})
		}
	}
	slices.SortFunc(hits, Compare)
	return hits
}

// rounding is by how much two scores may differ that the formula makes equal.
const rounding = 1e-9

// sameRanking says whether got is the beginning of a ranking. Texts whose scores differ by rounding
// may have changed places: the formula can be evaluated in more than one order.
func sameRanking(got, ranking []Hit, k int) bool {
	if len(got) != min(k, len(ranking)) || !slices.IsSortedFunc(got, Compare) {
		return false
	}
	score := map[string]float64{}
	for _, h := range ranking {
		score[h.ID] = h.Score
	}
	for i, h := range got {
		s, ok := score[h.ID]
		if !ok || math.Abs(s-h.Score) > rounding || math.Abs(ranking[i].Score-h.Score) > rounding {
			return false
		}
		delete(score, h.ID) // each once
	}
	return true
}

// One pass over shards in any order, and the second pass where the first gave
// up, rank as the textbook does.
func TestRanksAsTheTextbook(t *testing.T) {
	gaveUp := 0
	for range 300 {
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 1))
		texts := map[string]string{}
		for i := range r.IntN(300) {
			var s []string
			for range r.IntN(40) {
				s = append(s, string(rune('a'+int(r.ExpFloat64()*4)%26)))
			}
			texts[fmt.Sprintf("%03d", i)] = strings.Join(s, " ")
		}
		var terms []string
		for range 1 + r.IntN(6) {
			terms = append(terms, string(rune('a'+r.IntN(26))))
		}
		query, k, least := strings.Join(terms, " "), 1+r.IntN(12), 3*r.Float64()*float64(r.IntN(2))
		q := Parse(query)
		shards := make([]*Collector, 1+r.IntN(3))
		for i := range shards {
			shards[i] = q.NewCollector(k)
			if r.IntN(2) == 0 {
				shards[i].most = k + r.IntN(100)
			}
		}
		c := q.NewCounter()
		for id, s := range texts {
			c.Count([]byte(s))
			shards[r.IntN(len(shards))].Add(id, c)
		}
		all := shards[0]
		for _, o := range shards[1:] {
			all.Merge(o)
		}
		score := q.Scorer(all.Numbers)
		top, ok := all.Top(score, least)
		if !ok {
			gaveUp++
			tops := []*Top{NewTop(k, least), NewTop(k, least)}
			for id, s := range texts {
				if c.Count([]byte(s)); c.Found {
					tops[r.IntN(2)].Add(Hit{id, score.Score(c.Counts, c.Length)})
				}
			}
			top = tops[0]
			top.Merge(tops[1])
		}
		got, want := top.Hits(), textbook(texts, query, least)
		if !sameRanking(got, want, k) {
			t.Fatalf("seed %d: %q of %d texts, k %d:\ngot  %v\nwant %v", seed, query, len(texts), k, got, want[:min(k, len(want))])
		}
	}
	if gaveUp == 0 {
		t.Error("no collector gave up: the second pass was not tried")
	}
}

// What a collector keeps does not grow with the number of texts.
func TestCollectorIsBounded(t *testing.T) {
	q := Parse("a b c d e f g h")
	l, c := q.NewCollector(10), q.NewCounter()
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 200_000 {
		for j := range c.Counts {
			c.Counts[j] = r.Uint32N(50)
		}
		c.Found, c.Length = true, 400+r.IntN(100)
		l.Add(fmt.Sprint(i), c)
		if l.kept > most+1 || len(l.groups) > most+1 {
			t.Fatalf("%d candidates, %d groups", l.kept, len(l.groups))
		}
	}
	if _, ok := l.Top(q.Scorer(l.Numbers), 0); ok || l.Texts != 200_000 || l.Having[0] == 0 {
		t.Errorf("%v, %+v", ok, l.Numbers)
	}
}
