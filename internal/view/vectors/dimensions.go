package vectors

import (
	"cmp"
	"maps"
	"slices"
)

// dimensions are those that vectors were met with. The oldest vector decides about the store's.
// Among vectors of unknown age, whose versions are lost, the majority decides, and then the greater
// dimension.
type dimensions map[int]dimensionSeen

type dimensionSeen struct {
	n      int
	oldest uint64 // position of the write that brought the first one
}

// add takes a vector in: the number that it has and the version of its memory. A number is the
// position of the write that brought it, except for one from elsewhere.
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

// decided is the store's dimension, 0 if there is no vector.
func (d dimensions) decided() int {
	list := slices.SortedFunc(maps.Keys(d), func(a, b int) int {
		return cmp.Or(cmp.Compare(d[a].oldest, d[b].oldest), cmp.Compare(d[b].n, d[a].n), cmp.Compare(b, a))
	})
	if len(list) == 0 {
		return 0
	}
	return list[0]
}
