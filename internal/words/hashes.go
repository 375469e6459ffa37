package words

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sort"

	"github.com/cespare/xxhash/v2"
)

// find returns the row of an id, dead or live; ok is false if the segment does not have the id.
func (s *Segment) find(id string) (r uint32, ok bool, err error) {
	h := xxhash.Sum64String(id)
	i := sort.Search(s.Rows, func(i int) bool {
		v, e := s.column64(secHashes, i)
		if e != nil && err == nil {
			err = e
		}
		return e != nil || v >= h
	})
	if err != nil {
		return 0, false, err
	}
	return s.rowFrom(i, h, id)
}

// rowFrom returns the row of id. It looks at the ids whose hash is h; the first of them has index i in the sorted list
// of hashes. ok is false if id is not among them.
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
			return 0, false, broken("a hash names row %d, but the segment has %d rows", r, s.Rows)
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

// walkShare controls how findAll searches a segment. If the segment has at most walkShare rows per wanted id, findAll
// scans all hashes of the segment in order, which reads each cache line of hashes only once. Otherwise it searches for
// each id on its own.
const walkShare = 64

// wanted is one of the ids that findAll looks for.
type wanted struct {
	hash uint64
	i    int // index of the id in the list of ids
}

// foundAt is the place of the live row of an id. ok is false if the id has no live row.
type foundAt struct {
	place
	ok bool
}

// findAll returns the places of the live rows of many ids, in the order of ids. This is cheaper than calling find for
// each id in each part.
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

// walkHashes returns the index of the first hash in the sorted list b that is not less than h, or the length of the
// list if all are less. The search begins at index from, which must not be above the result. It is fastest if the
// result is close to from.
func walkHashes(b []byte, from int, h uint64) int {
	look := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	lo, hi := from, from
	for step := 1; hi < len(b)/8 && look(hi) < h; step *= 2 {
		lo, hi = hi+1, hi+step
	}
	hi = min(hi, len(b)/8)
	return lo + sort.Search(hi-lo, func(i int) bool { return look(lo+i) >= h })
}

// Versions returns the version of the live row of each id, in the order of ids; 0 if an id has no live row.
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
