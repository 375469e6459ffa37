//go:build (!amd64 && !arm64) || purego

package vector

// kernelOf is the metric's kernel where there is no assembly, or none is wanted.
func kernelOf(m Metric) kernel { return plainKernel(m) }
