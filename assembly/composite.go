package assembly

import (
	"iter"
	"math"
)

// Composite returns the mean direction of the members: the mean of their unit vectors, scaled to length 1. Each vector
// counts equally, however long it is. Vectors that are empty or all zero are ignored. dim is the expected dimension, 0
// for that of the first vector that counts; vectors of another dimension are ignored too, and odd is their number. The
// result is nil if no vector counts, or if the vectors cancel out so that there is no direction.
//
// The vectors are added in the order of the members, so that the same members result in the same bits.
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
	// Below this the sum is a rounding error: each addend has length 1.
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

// length returns the length of a vector. The squares of float32 values cannot overflow float64.
func length(v []float32) float64 {
	var square float64
	for _, x := range v {
		square += float64(x) * float64(x)
	}
	return math.Sqrt(square)
}
