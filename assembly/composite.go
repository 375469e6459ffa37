package assembly

import (
	"iter"
	"math"
)

// Composite is the direction in which the members lie: the mean of their unit
// vectors, of length 1. Each counts alike, however long its vector is. A vector
// that is empty or all zero does not count. dim is the dimension that they
// should have, 0 that of the first that counts; vectors of another do not count
// either, and odd says how many those were. The result is nil when nothing
// counts, or when the vectors cancel out and there is no direction.
//
// The order is that of the members, so that the same members give the same bits.
func Composite(dim int, vectors iter.Seq[[]float32]) (composite []float32, odd int) {
	var sum []float64
	for v := range vectors {
		norm := length(v)
		if norm == 0 {
			continue
		}
		if dim == 0 {
			dim = len(v)
		}
		if len(v) != dim {
			odd++
			continue
		}
		if sum == nil {
			sum = make([]float64, dim)
		}
		for i, x := range v {
			sum[i] += float64(x) / norm
		}
	}
	var square float64
	for _, x := range sum {
		square += x * x
	}
	// Below this the sum is what rounding left: each addend has length 1.
	if square < 1e-18 {
		return nil, odd
	}
	norm := math.Sqrt(square)
	composite = make([]float32, dim)
	for i, x := range sum {
		composite[i] = float32(x / norm)
	}
	return composite, odd
}

// length of a vector of float32 cannot overflow in float64.
func length(v []float32) float64 {
	var square float64
	for _, x := range v {
		square += float64(x) * float64(x)
	}
	return math.Sqrt(square)
}
