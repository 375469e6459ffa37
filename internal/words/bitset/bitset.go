package bitset

import "math/bits"

// Set is a set of rows. A nil Set is empty.
type Set []uint64

// Has reports whether row r is in the set.
func (b Set) Has(r uint32) bool { return b != nil && b[r>>6]&(1<<(r&63)) != 0 }

// LiveBehind returns the first live row after r. The set must have the dead rows, so a row that is not in it is live.
// If no row after r is live, the result is at or after the end of the rows.
func (b Set) LiveBehind(r uint32) uint32 {
	if r++; b == nil {
		return r
	}
	for i := int(r >> 6); i < len(b); i++ {
		if free := ^b[i] >> (r & 63) << (r & 63); free != 0 {
			return uint32(i)<<6 + uint32(bits.TrailingZeros64(free))
		}
		r = 0
	}
	return uint32(len(b)) << 6
}

// LiveBefore returns the last live row before r, and reports whether there is one. The set must have the dead
// rows, so a row that is not in it is live.
func (b Set) LiveBefore(r uint32) (uint32, bool) {
	if r == 0 || b == nil {
		return r - 1, r > 0
	}
	r--
	for i := int(r >> 6); i >= 0; i-- {
		if free := ^b[i] << (63 - r&63) >> (63 - r&63); free != 0 {
			return uint32(i)<<6 + 63 - uint32(bits.LeadingZeros64(free)), true
		}
		r = 63
	}
	return 0, false
}

// New returns an empty set for n rows.
func New(n int) Set { return make(Set, (n+63)/64) }

// With adds row r and returns the set. If b is nil, it creates a set for n rows.
func (b Set) With(r uint32, n int) Set {
	if b == nil {
		b = New(n)
	}
	b[r>>6] |= 1 << (r & 63)
	return b
}

// Put adds row r to the set, which must not be nil.
func (b Set) Put(r uint32) { b[r>>6] |= 1 << (r & 63) }
