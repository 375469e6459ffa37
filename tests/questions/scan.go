package questions

import (
	"cmp"
	"math"
	"slices"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/text"
)

// scanned is one text as Scan sees it.
type scanned struct {
	id     string
	counts map[string]float64
	length float64
}

// Scan returns a search that reads every content: no stems, no stop words, no fields, no neighbours.
func Scan(memories []varve.Memory) func(query string) ([]string, error) {
	const k1, b = 1.2, 0.75
	var all []scanned
	having, words := map[string]float64{}, 0.0
	for _, m := range memories {
		t := scanned{id: m.ID, counts: map[string]float64{}}
		text.Each([]byte(m.Content), nil, func(w []byte) {
			t.length++
			t.counts[string(w)]++
		}, func(pair []byte, at int) {
			t.length++
			t.counts[string(pair[at:])]++
			if at > 0 {
				t.counts[string(pair)]++
			}
		})
		for w := range t.counts {
			having[w]++
		}
		words += t.length
		all = append(all, t)
	}
	n := float64(len(all))
	return func(query string) ([]string, error) {
		terms := termsOf(query)
		type hit struct {
			id    string
			score float64
		}
		var hits []hit
		for _, t := range all {
			score := 0.0
			for _, w := range terms {
				if tf := t.counts[w]; tf > 0 {
					idf := math.Log(1 + (n-having[w]+0.5)/(having[w]+0.5))
					score += idf * (k1 + 1) * tf / (tf + k1*(1-b+b*t.length/(words/n)))
				}
			}
			if score > 0 {
				hits = append(hits, hit{t.id, score})
			}
		}
		slices.SortFunc(hits, func(x, y hit) int { return cmp.Or(cmp.Compare(y.score, x.score), cmp.Compare(x.id, y.id)) })
		var ids []string
		for _, h := range hits[:min(len(hits), Top)] {
			ids = append(ids, h.id)
		}
		return ids, nil
	}
}

// termsOf returns a query's words, its pairs of characters, and single characters.
func termsOf(query string) (terms []string) {
	alone := ""
	end := func() {
		if alone != "" {
			terms = append(terms, alone)
		}
		alone = ""
	}
	text.Each([]byte(query), nil, func(w []byte) {
		end()
		terms = append(terms, string(w))
	}, func(pair []byte, at int) {
		if at > 0 {
			alone = ""
			terms = append(terms, string(pair))
			return
		}
		end()
		alone = string(pair)
	})
	end()
	return terms
}
