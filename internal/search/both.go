package search

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/varve-db/varve/internal/engine"
)

// A query with words and a vector ranks the best of either side together. What BM25F and a cosine
// give cannot be added: each side's scores are stretched, so that its best has 1 and the last of
// those that it was asked for 0; or, where no more have any of the words, what has none. What only one
// side has found has nothing of the other.

// eachBest is how many hits of each side are ranked together, at least.
const eachBest = 200

// vectorShare is the weight of the vector's side, that of the words is 1.
const vectorShare = 0.25

// both finds the n best by words and by a vector.
func (s *Search) both(ctx context.Context, q *Query, f *engine.Filters, n int, least float64, bad *unreadable, a *asked) ([]found, error) {
	each := max(eachBest, n)
	by, err := s.byWords(ctx, q, f, each, math.Inf(-1), bad, a)
	if err != nil {
		return nil, err
	}
	var worse unreadable
	near, err := s.nearest(ctx, q.Vector, f, each, math.Inf(-1), &worse, q.Model)
	if err != nil {
		return nil, err
	}
	bad.also(&worse)
	share := cmp.Or(q.Share, vectorShare)
	sums := map[string]found{}
	floor := 0.0
	if len(by) == each {
		floor = by[each-1].Score
	}
	for _, h := range stretched(by, floor) {
		h.words = h.Score
		sums[h.ID] = h
	}
	floor = 0
	if len(near) > 0 {
		floor = near[len(near)-1].Score
	}
	for _, h := range stretched(near, floor) {
		sum := sums[h.ID]
		sum.ID, sum.Score, sum.vector, sum.similarity = h.ID, sum.words+share*h.Score, h.Score, h.similarity
		sums[h.ID] = sum
	}
	var list []found
	for _, h := range sums {
		if h.Score /= 1 + share; h.Score >= least {
			list = append(list, h)
		}
	}
	slices.SortFunc(list, func(a, b found) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID)) })
	return list[:min(n, len(list))], nil
}

// stretched gives the best of a list 1 and floor 0; all of them 1 where there is no difference.
func stretched(list []found, floor float64) []found {
	for i := len(list) - 1; i >= 0; i-- { // the first last, for it is the measure
		if most := list[0].Score; most > floor {
			list[i].Score = (list[i].Score - floor) / (most - floor)
		} else {
			list[i].Score = 1
		}
	}
	return list
}
