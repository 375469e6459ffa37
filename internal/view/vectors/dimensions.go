package vectors

import (
	"cmp"
	"maps"
	"slices"
)

// dimensions counts vectors by dimension. The dimension of the oldest vector is the store's dimension. If the age of
// the vectors is unknown because their versions are lost, the most frequent dimension is the store's; if several are
// equally frequent, the greatest of them.
type dimensions map[int]dimensionSeen

type dimensionSeen struct {
	n      int
	oldest uint64 // log position of the write that added the oldest vector of the dimension
}

// add counts a vector of dimension dim. number is the vector's number, version that of its memory. If number is below
// version and can be a log position (a multiple of 8), it is the position of the write that added the vector. Otherwise
// it does not tell the vector's age, and add uses version instead.
func (d dimensions) add(dim int, number int64, version uint64) {
	at := version
	if number > 0 && number%8 == 0 && uint64(number) < at {
		at = uint64(number)
	}
	seen := d[dim]
	if seen.n == 0 || at < seen.oldest {
		seen.oldest = at
	}
	seen.n++
	d[dim] = seen
}

// decided returns the store's dimension, or 0 if there is no vector.
func (d dimensions) decided() int {
	list := slices.SortedFunc(maps.Keys(d), func(a, b int) int {
		return cmp.Or(cmp.Compare(d[a].oldest, d[b].oldest), cmp.Compare(d[b].n, d[a].n), cmp.Compare(b, a))
	})
	if len(list) == 0 {
		return 0
	}
	return list[0]
}
