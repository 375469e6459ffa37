package assembly

import (
	"iter"
	"math"
)

// Composite returns the mean direction of the members' vectors: the mean of their unit vectors, scaled to length 1.
// Each vector counts equally, whatever its length. Vectors that are empty or all zero are ignored. dim is the expected
// dimension; if dim is 0, the first vector that is not ignored sets it. Vectors of another dimension are ignored too,
// and odd is the number of these. The composite is nil if all vectors are ignored, or if the vectors cancel each other
// out, so that there is no direction.
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
