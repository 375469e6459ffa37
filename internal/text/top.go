package text

import (
	"cmp"
	"container/heap"
	"slices"
)

// Hit is a text that was found.
type Hit struct {
	ID    string
	Score float64
}

// Compare orders hits: the higher score first, then by id.
func Compare(a, b Hit) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID)) }

// Top keeps the best k hits that reach a score.
type Top struct {
	k    int
	min  float64
	hits worst
}

// NewTop makes a Top for k hits that score at least min.
func NewTop(k int, min float64) *Top { return &Top{k: k, min: min} }

// Add takes in a hit.
func (t *Top) Add(h Hit) {
	switch {
	case h.Score < t.min || t.k <= 0:
	case len(t.hits) < t.k:
		heap.Push(&t.hits, h)
	case Compare(h, t.hits[0]) < 0:
		t.hits[0] = h
		heap.Fix(&t.hits, 0)
	}
}

// Merge takes in the hits of another.
func (t *Top) Merge(o *Top) {
	for _, h := range o.hits {
		t.Add(h)
	}
}

// Hits gives them, the best first.
func (t *Top) Hits() []Hit {
	return slices.SortedFunc(slices.Values(t.hits), Compare)
}

// worst is a heap with the worst hit on top.
type worst []Hit

func (w worst) Len() int           { return len(w) }
func (w worst) Less(i, j int) bool { return Compare(w[i], w[j]) > 0 }
func (w worst) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }
func (w *worst) Push(x any)        { *w = append(*w, x.(Hit)) }
func (w *worst) Pop() any          { h := (*w)[len(*w)-1]; *w = (*w)[:len(*w)-1]; return h }
