package words

import (
	"context"

	"github.com/varve-db/varve/internal/words/query"
)

// Share is the amount that a word of a query adds to the score of a document.
type Share struct {
	Word  int // index of the word in Query.All
	Score float64
	Near  float64 // the part of Score that comes from the neighbours, from 0 to 1
}

// watch records what each word adds to the scores of the documents in hits.
type watch struct {
	hits   map[place]int
	shares [][]Share
}

func (w *watch) note(at place, s Share) {
	if i, ok := w.hits[at]; ok {
		w.shares[i] = append(w.shares[i], s)
	}
}

// own returns the weight of the current word in row r itself, without its neighbours.
func (s *search) own(c *scratch, r uint32) float64 {
	return s.inContent(c, r) + float64(c.other[r])/unit
}

// settle scales the recorded shares of documents that were ranked lower because they lack the only word found, so that
// the shares add up to the scores.
func (s *search) settle(w *watch) {
	for at, i := range w.hits {
		if s.looked == 1 && !s.scratch[at.part].self.Has(at.row) {
			for k := range w.shares[i] {
				w.shares[i][k].Score *= s.nearby
			}
		}
	}
}

// Explain returns for each hit what each word adds to Parts.Own, in the order of the words. q and f must be those of
// the search that found the hits.
func (v *Set) Explain(ctx context.Context, q *query.Query, f Filter, hits []Hit) ([][]Share, error) {
	w := &watch{map[place]int{}, make([][]Share, len(hits))}
	numbers := map[uint64]int{}
	for i, p := range v.parts {
		numbers[p.ID] = i
	}
	for i, h := range hits {
		w.hits[place{numbers[h.At.Part], h.At.Row}] = i
	}
	s, err := v.scored(ctx, q, &f, w)
	if err == nil {
		s.settle(w)
	}
	s.release()
	return w.shares, err
}
