//go:build !purego

package vector

//go:noescape
func dotNEON(q *float32, rows *byte, d, n int, out *float32)

//go:noescape
func squaresNEON(q *float32, rows *byte, d, n int, out *float32)

// kernelOf returns the fastest kernel for a metric: every arm64 processor has NEON.
func kernelOf(m Metric) kernel {
	if m == L2 {
		return assembly(squaresNEON)
	}
	return assembly(dotNEON)
}
