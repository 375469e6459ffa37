package words

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
	"sort"

	"github.com/cespare/xxhash/v2"
)

// find finds the row of an id.
func (s *Segment) find(id string) (r uint32, ok bool, err error) {
	h := xxhash.Sum64String(id)
	i, err := searchHashes(s.Rows, h, func(i int) (uint64, error) { return s.column64(secHashes, i) })
	if err != nil {
		return 0, false, err
	}
	return s.rowFrom(i, h, id)
}

// rowFrom finds the row of an id among those of its hash, of which i is the first.
func (s *Segment) rowFrom(i int, h uint64, id string) (r uint32, ok bool, err error) {
	for ; i < s.Rows; i++ {
		v, err := s.column64(secHashes, i)
		if err != nil || v != h {
			return 0, false, err
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
	return 0, false, nil
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

// walkShare is up to how many rows of a segment there may be for each id of many that are looked for, for the
// hashes to be gone through in order: then a cache line of them is read once, for all ids that fall into it.
const walkShare = 64

// wanted is one of many ids that are looked for.
type wanted struct {
	hash uint64
	i    int // of the ids
}

// foundAt is where it was found, if it was.
type foundAt struct {
	place
	ok bool
}

// findAll is find for many ids: what one costs does not grow with the parts as it does alone.
func (v *Set) findAll(ids []string) ([]foundAt, error) {
	found, left := make([]foundAt, len(ids)), make([]wanted, len(ids))
	for i, id := range ids {
		left[i] = wanted{xxhash.Sum64String(id), i}
	}
	slices.SortFunc(left, func(a, b wanted) int { return cmp.Compare(a.hash, b.hash) })
	for n := len(v.parts) - 1; n >= 0 && len(left) > 0; n-- {
		p, rest, at := v.parts[n], left[:0], 0
		walked := []byte(nil)
		if p.Seg.Rows/len(left) <= walkShare {
			var err error
			if walked, err = p.Seg.section(secHashes); err != nil {
				return nil, err
			}
		}
		for _, w := range left {
			var r uint32
			var ok bool
			var err error
			if walked == nil {
				r, ok, err = p.Seg.find(ids[w.i])
			} else {
				at = walkHashes(walked, at, w.hash)
				r, ok, err = p.Seg.rowFrom(at, w.hash, ids[w.i])
			}
			if err != nil {
				return nil, err
			}
			if ok && !p.dead.Has(r) {
				found[w.i] = foundAt{place{n, r}, true}
			} else {
				rest = append(rest, w)
			}
		}
		left = rest
	}
	return found, nil
}

// walkHashes is searchHashes from a place that is not behind what is looked for, and most often near it.
func walkHashes(b []byte, from int, h uint64) int {
	look := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	lo, hi := from, from
	for step := 1; hi < len(b)/8 && look(hi) < h; step *= 2 {
		lo, hi = hi+1, hi+step
	}
	hi = min(hi, len(b)/8)
	return lo + sort.Search(hi-lo, func(i int) bool { return look(lo+i) >= h })
}

// Versions are those of the live rows of ids, 0 where there is none.
func (v *Set) Versions(ids []string) ([]uint64, error) {
	found, err := v.findAll(ids)
	if err != nil {
		return nil, err
	}
	out := make([]uint64, len(ids))
	for i, f := range found {
		if f.ok {
			if out[i], err = v.parts[f.part].Seg.LSN(f.row); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}
