//go:build (!amd64 && !arm64) || purego

package vector

// kernelOf returns the kernel of a metric for builds without assembly.
func kernelOf(m Metric) kernel { return plainKernel(m) }
