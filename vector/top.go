package vector

import "slices"

// candidate is a row of a FAISS file that may be among the best results of a search. A greater val means a nearer
// vector.
type candidate struct {
	val float32
	row int64
}

// worse reports whether candidate a ranks after b. If val is equal, the candidate with the lower row ranks first; the
// rows are in the order of the keys.
func worse(a, b candidate) bool { return a.val < b.val || a.val == b.val && a.row > b.row }

// top collects the best k candidates in a heap whose root is the worst candidate.
type top struct {
	k    int
	heap []candidate
}

// wants reports whether a candidate belongs to the best k found so far.
func (t *top) wants(c candidate) bool {
	return len(t.heap) < t.k || len(t.heap) > 0 && worse(t.heap[0], c)
}

// add adds a candidate. Call it only if wants has returned true for the candidate.
func (t *top) add(c candidate) {
	h := t.heap
	if len(h) < t.k {
		h = append(h, c)
		i := len(h) - 1
		for i > 0 && worse(h[i], h[(i-1)/2]) {
			h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
			i = (i - 1) / 2
		}
		t.heap = h
		return
	}
	h[0] = c
	for i := 0; ; {
		j := 2*i + 1
		if j >= len(h) {
			return
		}
		if j+1 < len(h) && worse(h[j+1], h[j]) {
			j++
		}
		if !worse(h[j], h[i]) {
			return
		}
		h[i], h[j] = h[j], h[i]
		i = j
	}
}

// best returns the best k of the candidates in tops, best first.
func best(k int, tops []top) []candidate {
	var all []candidate
	for i := range tops {
		all = append(all, tops[i].heap...)
	}
	slices.SortFunc(all, func(a, b candidate) int {
		switch {
		case worse(b, a):
			return -1
		case worse(a, b):
			return 1
		}
		return 0
	})
	return all[:min(k, len(all))]
}
