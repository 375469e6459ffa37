//go:build !purego

package vector

import "golang.org/x/sys/cpu"

//go:noescape
func dotAVX2(q *float32, rows *byte, d, n int, out *float32)

//go:noescape
func squaresAVX2(q *float32, rows *byte, d, n int, out *float32)

// kernelOf returns the fastest kernel for a metric on this processor.
func kernelOf(m Metric) kernel {
	if !cpu.X86.HasAVX2 || !cpu.X86.HasFMA {
		return plainKernel(m)
	}
	if m == L2 {
		return assembly(squaresAVX2)
	}
	return assembly(dotAVX2)
}
