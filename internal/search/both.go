package search

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/varve-db/varve/internal/engine"
)

// A query with words and a vector ranks the best of either side together. What BM25F and a cosine
// give cannot be added: each side's scores are stretched, so that its best has 1 and the last of its
// window 0; or, where no more have any of the words, what has none. What only one side has found has
// nothing of the other. With Query.RankFusion the places count, whatever the scores are.
//
// The windows do not depend on how many hits are asked for: so pages continue one another, and a hit
// keeps its score. What is in neither window follows behind those that are: by words, in their order, then
// by vector; each with the score 0.

// window is how many hits of each side are ranked together.
const window = 200

// vectorShare is the weight of the vector's side, that of the words is 1.
const vectorShare = 0.25

// rankOffset is what is added to a place: the usual one of reciprocal rank fusion.
const rankOffset = 60

// both finds the n best by words and by a vector.
func (s *Search) both(ctx context.Context, q *Query, f *engine.Filters, n int, least float64, bad *unreadable,
	a *asked) ([]found, error) {
	each := max(window, n)
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
	list := fused(by[:min(window, len(by))], near[:min(window, len(near))], cmp.Or(q.Share, vectorShare), q.RankFusion)
	if len(list) < n {
		list = behindWindows(list, by, near)
	}
	list = atLeast(list, least)
	return list[:min(n, len(list))], nil
}

// atLeast leaves out what has a lower score, of a list with the best first.
func atLeast(list []found, least float64) []found {
	if i := slices.IndexFunc(list, func(h found) bool { return h.Score < least }); i >= 0 {
		list = list[:i]
	}
	return list
}

// fused ranks two windows together.
func fused(by, near []found, share float64, ranks bool) []found {
	var words, vector []float64
	if ranks {
		words, vector = places(by), places(near)
	} else {
		floor := 0.0
		if len(by) == window {
			floor = by[window-1].Score
		}
		words = stretched(by, floor)
		if len(near) > 0 {
			floor = near[len(near)-1].Score
		}
		vector = stretched(near, floor)
	}
	sums := map[string]found{}
	for i, h := range by {
		h.words, h.Score = words[i], words[i]
		sums[h.ID] = h
	}
	for i, h := range near {
		sum := sums[h.ID]
		sum.ID, sum.Score, sum.vector, sum.similarity = h.ID, sum.words+share*vector[i], vector[i], h.similarity
		sums[h.ID] = sum
	}
	list := make([]found, 0, len(sums))
	for _, h := range sums {
		h.Score /= 1 + share
		list = append(list, h)
	}
	slices.SortFunc(list, func(a, b found) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID)) })
	return list
}

// behindWindows adds what only a list has: of n hits of each side that were asked for there are n, or
// all.
func behindWindows(list, by, near []found) []found {
	seen := make(map[string]bool, len(list))
	for _, h := range list {
		seen[h.ID] = true
	}
	for _, side := range [][]found{by, near} {
		for _, h := range side[min(window, len(side)):] {
			if seen[h.ID] {
				continue
			}
			seen[h.ID] = true
			h.Score = 0
			list = append(list, h)
		}
	}
	return list
}

// stretched are the scores of a list, the best 1 and floor 0; all of them 1 where there is no difference.
func stretched(list []found, floor float64) []float64 {
	scores := make([]float64, len(list))
	for i, h := range list {
		if scores[i] = 1; list[0].Score > floor {
			scores[i] = (h.Score - floor) / (list[0].Score - floor)
		}
	}
	return scores
}

// places are the scores of a list by its places, the first 1.
func places(list []found) []float64 {
	scores := make([]float64, len(list))
	for i := range list {
		scores[i] = float64(rankOffset+1) / float64(rankOffset+1+i)
	}
	return scores
}
