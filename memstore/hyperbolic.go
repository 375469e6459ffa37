package memstore

import "math"

// Hyperbolic maps an embedding into the Poincaré ball: e/‖e‖ · tanh(‖e‖/2), the exponential map at the origin for
// curvature −1. The systems that wrote hyperbolic_embedding used the same mapping. The zero vector is mapped to itself.
// The store never calls Hyperbolic.
func Hyperbolic(e []float32) []float32 {
	var sum float64
	for _, x := range e {
		sum += float64(x) * float64(x)
	}
	out := make([]float32, len(e))
	norm := math.Sqrt(sum)
	if norm == 0 {
		return out
	}
	scale := math.Tanh(norm/2) / norm
	for i, x := range e {
		out[i] = float32(float64(x) * scale)
	}
	return out
}
