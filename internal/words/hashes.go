package words

import (
	"math/bits"
	"sort"

	"github.com/cespare/xxhash/v2"
)

// find finds the row of an id.
func (s *Segment) find(id string) (r uint32, ok bool, err error) {
	h := xxhash.Sum64String(id)
	look := func(i int) (uint64, error) { return s.column64(secHashes, i) }
	i, err := searchHashes(s.Rows, h, look)
	for ; err == nil && i < s.Rows; i++ {
		v, e := look(i)
		if e != nil {
			return 0, false, e
		}
		if v != h {
			break
		}
		if r, err = s.column32(secHashRow, i); err != nil {
			return 0, false, err
		}
		if int(r) >= s.Rows {
			return 0, false, broken("a hash names row %d of %d", r, s.Rows)
		}
		b, err := s.ID(r)
		if err != nil {
			return 0, false, err
		}
		if string(b) == id {
			return r, true, nil
		}
	}
	return 0, false, err
}

// searchHashes is the first of n sorted hashes that is not below h, n where all are. Hashes are spread
// evenly, so that the value of one tells its place, give or take some √n places, and the one found there
// tells it better: a few looks close to each other, where halving goes to twenty places far apart, and
// waits for the memory at each. Of values that are no hashes, as a forged file may have, it takes three times
// the looks of halving at most.
func searchHashes(n int, h uint64, look func(i int) (uint64, error)) (int, error) {
	if n == 0 {
		return 0, nil
	}
	away := func(d uint64) int {
		k, _ := bits.Mul64(d, uint64(n))
		return int(k)
	}
	at := away(h)
	v, err := look(at)
	for range 2 {
		if err != nil {
			return 0, err
		}
		if v < h {
			at = min(at+away(h-v), n-1)
		} else {
			at = max(at-away(v-h), 0)
		}
		v, err = look(at)
	}
	// From there further and further away until it has been passed. What is below lo is below h, what
	// is at hi or above is not.
	lo, hi, up := 0, n, v < h
	for step := 4; err == nil; step *= 2 {
		if v < h {
			lo = at + 1
		} else {
			hi = at
		}
		if v < h != up {
			break
		}
		if at -= step; up {
			at += 2 * step
		}
		if at < lo || at >= hi {
			break
		}
		v, err = look(at)
	}
	if err != nil {
		return 0, err
	}
	i := sort.Search(hi-lo, func(i int) bool {
		v, e := look(lo + i)
		if e != nil && err == nil {
			err = e
		}
		return e != nil || v >= h
	})
	return lo + i, err
}
