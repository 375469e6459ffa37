package search

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/varve-db/varve/internal/engine"
)

// A query with words and a vector ranks the best hits of both sides together. BM25F scores and cosines cannot be added:
// the scores of each side are scaled so that its best hit has 1 and the last one in its window 0; if fewer memories
// than the window have any of the words, a memory without words has 0. A hit found by one side only gets nothing from
// the other. With Query.RankFusion ranks count instead of scores.
//
// The windows do not depend on the number of hits asked for, so pages continue one another and a hit keeps its score.
// Hits outside both windows follow with score 0: first those by words, then those by vector, each in their order.

// window is the number of best hits by words, and of best hits by vector, that are ranked together.
const window = 200

// vectorShare is the default weight of the score by vector; the weight of the score by words is 1.
const vectorShare = 0.25

// rankOffset is added to each rank in reciprocal rank fusion; 60 is the usual value.
const rankOffset = 60

// hybridHits returns the n best hits by words and by a vector, ranked together, whose scores are at least
// minScore.
func (s *Search) hybridHits(ctx context.Context, q *Query, f *engine.Filters, n int, minScore float64, bad *unreadable,
	a *asked) ([]found, error) {
	each := max(window, n)
	by, err := s.byWords(ctx, q, f, each, math.Inf(-1), bad, a)
	if err != nil {
		return nil, err
	}
	var worse unreadable
	near, err := s.byVector(ctx, q, f, each, math.Inf(-1), &worse)
	if err != nil {
		return nil, err
	}
	bad.addAll(&worse)
	list := fused(by[:min(window, len(by))], near[:min(window, len(near))], cmp.Or(q.Share, vectorShare), q.RankFusion)
	if len(list) < n {
		list = behindWindows(list, by, near)
	}
	list = atLeast(list, minScore)
	return list[:min(n, len(list))], nil
}

// atLeast returns the hits in list whose scores are at least minScore. The list must be sorted, the best hit
// first.
func atLeast(list []found, minScore float64) []found {
	if i := slices.IndexFunc(list, func(h found) bool { return h.Score < minScore }); i >= 0 {
		list = list[:i]
	}
	return list
}

// fused ranks the best hits by words (wordHits) and the best hits by vector (vectorHits) together. share is the weight
// of vectorHits; the weight of wordHits is 1. If ranks is true, fused combines the ranks of the hits instead of their
// scores.
func fused(wordHits, vectorHits []found, share float64, ranks bool) []found {
	var words, vector []float64
	if ranks {
		words, vector = places(wordHits), places(vectorHits)
	} else {
		floor := 0.0
		if len(wordHits) == window {
			floor = wordHits[window-1].Score
		}
		words = stretched(wordHits, floor)
		if len(vectorHits) > 0 {
			floor = vectorHits[len(vectorHits)-1].Score
		}
		vector = stretched(vectorHits, floor)
	}
	sums := map[document]found{}
	for i, h := range wordHits {
		h.words, h.Score = words[i], words[i]
		sums[h.document()] = h
	}
	for i, h := range vectorHits {
		sum, ok := sums[h.document()]
		if !ok {
			sum.ID, sum.note, sum.section, sum.lsn = h.ID, h.note, h.section, h.lsn
		}
		sum.Score, sum.vector, sum.similarity = sum.words+share*vector[i], vector[i], h.similarity
		sums[h.document()] = sum
	}
	list := make([]found, 0, len(sums))
	for _, h := range sums {
		h.Score /= 1 + share
		list = append(list, h)
	}
	slices.SortFunc(list, compareFound)
	return list
}

// behindWindows appends to list, with score 0, the hits that were not ranked together. wordHits has the hits by words,
// and vectorHits the hits by vector. In both lists the first hits, as many as the constant window, were ranked
// together; behindWindows appends the hits after them, unless list has them already. Each of the two lists must have
// all hits, or as many as the search needs.
func behindWindows(list, wordHits, vectorHits []found) []found {
	seen := make(map[document]bool, len(list))
	for _, h := range list {
		seen[h.document()] = true
	}
	for _, side := range [][]found{wordHits, vectorHits} {
		for _, h := range side[min(window, len(side)):] {
			if seen[h.document()] {
				continue
			}
			seen[h.document()] = true
			h.Score = 0
			list = append(list, h)
		}
	}
	return list
}

// stretched returns the scores of the hits in list, on a scale on which the best score is 1 and the score floor is 0.
// If the best score is not greater than floor, all results are 1. list is sorted, the best hit first.
func stretched(list []found, floor float64) []float64 {
	scores := make([]float64, len(list))
	for i, h := range list {
		if scores[i] = 1; list[0].Score > floor {
			scores[i] = (h.Score - floor) / (list[0].Score - floor)
		}
	}
	return scores
}

// places returns a score for each rank in list, as in reciprocal rank fusion (see rankOffset). The score of the first
// rank is 1, and later ranks have smaller scores.
func places(list []found) []float64 {
	scores := make([]float64, len(list))
	for i := range list {
		scores[i] = float64(rankOffset+1) / float64(rankOffset+1+i)
	}
	return scores
}
