//go:build !purego

package vector

//go:noescape
func dotNEON(q *float32, rows *byte, d, n int, out *float32)

//go:noescape
func squaresNEON(q *float32, rows *byte, d, n int, out *float32)

// kernelOf is the metric's fastest kernel on this machine: every arm64 has NEON.
func kernelOf(m Metric) kernel {
	if m == L2 {
		return assembly(squaresNEON)
	}
	return assembly(dotNEON)
}
