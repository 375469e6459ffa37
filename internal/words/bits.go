package words

import mathbits "math/bits"

// bits is a set of rows.
type bits []uint64

func (b bits) has(r uint32) bool { return b != nil && b[r>>6]&(1<<(r&63)) != 0 }

// liveBehind is the first row behind r that is not in the set.
func (b bits) liveBehind(r uint32) uint32 {
	if r++; b == nil {
		return r
	}
	for i := int(r >> 6); i < len(b); i++ {
		if free := ^b[i] >> (r & 63) << (r & 63); free != 0 {
			return uint32(i)<<6 + uint32(mathbits.TrailingZeros64(free))
		}
		r = 0
	}
	return uint32(len(b)) << 6
}

// liveBefore is the last row before r that is not in the set.
func (b bits) liveBefore(r uint32) (uint32, bool) {
	if r == 0 || b == nil {
		return r - 1, r > 0
	}
	r--
	for i := int(r >> 6); i >= 0; i-- {
		if free := ^b[i] << (63 - r&63) >> (63 - r&63); free != 0 {
			return uint32(i)<<6 + 63 - uint32(mathbits.LeadingZeros64(free)), true
		}
		r = 63
	}
	return 0, false
}

func (b bits) with(r uint32, n int) bits {
	if b == nil {
		b = make(bits, (n+63)/64)
	}
	b[r>>6] |= 1 << (r & 63)
	return b
}

func (b bits) set(r uint32) { b[r>>6] |= 1 << (r & 63) }
