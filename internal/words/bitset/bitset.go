package bitset

import "math/bits"

// Set is a set of rows; nil is empty.
type Set []uint64

// Has reports whether a row is in it.
func (b Set) Has(r uint32) bool { return b != nil && b[r>>6]&(1<<(r&63)) != 0 }

// LiveBehind is the first row behind r that is not in the set.
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

// LiveBefore is the last row before r that is not in the set.
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

// New is an empty set for so many rows.
func New(n int) Set { return make(Set, (n+63)/64) }

// With puts a row of n in, into a new set where there is none.
func (b Set) With(r uint32, n int) Set {
	if b == nil {
		b = New(n)
	}
	b[r>>6] |= 1 << (r & 63)
	return b
}

// Put puts a row in.
func (b Set) Put(r uint32) { b[r>>6] |= 1 << (r & 63) }
