package words

import (
	"context"

	"github.com/varve-db/varve/internal/words/query"
)

// Share is the amount that a word of a query adds to the score of a document.
type Share struct {
	Word  int // index of the word in Query.All
	Score float64
	Near  float64 // fraction of Score that comes from neighbours of the document, from 0 to 1
}

// watch records the amounts that each word adds to the scores of the documents in hits.
type watch struct {
	hits   map[place]int
	shares [][]Share
}

func (w *watch) note(pos place, s Share) {
	if i, ok := w.hits[pos]; ok {
		w.shares[i] = append(w.shares[i], s)
	}
}

// settle corrects the recorded shares if only one word of the query was found. Documents that do not have this word
// themselves were ranked lower than the sum of their shares; settle scales these shares so that they add up to the
// score.
func (s *search) settle(w *watch) {
	for at, i := range w.hits {
		if s.looked == 1 && !s.scratch[at.part].self.Has(at.row) {
			for k := range w.shares[i] {
				w.shares[i][k].Score *= s.nearby
			}
		}
	}
}

// Explain returns, for each hit, the amounts that each word of the query adds to Parts.Own, in the order of the words.
// q and f must be the query and the filter of the search that found the hits.
func (v *Set) Explain(ctx context.Context, q *query.Query, f Filter, hits []Hit) ([][]Share, error) {
	w := &watch{map[place]int{}, make([][]Share, len(hits))}
	marks := v.newMarks()
	for i, h := range hits {
		at := place{v.index[h.At.Part], h.At.Row}
		w.hits[at] = i
		if err := marks.add(at); err != nil {
			return nil, err
		}
	}
	in, err := marks.spans()
	if err != nil || len(hits) == 0 {
		return w.shares, err
	}
	s, err := v.prepare(ctx, q, &f)
	if err != nil {
		return nil, err
	}
	s, err = s.pass(in)
	defer s.release()
	if s.watch = w; err == nil {
		err = s.score()
	}
	if err == nil {
		s.settle(w)
	}
	return w.shares, err
}
