//go:build (!amd64 && !arm64) || purego

package vector

// kernelOf returns the kernel for a metric in builds without assembly code.
func kernelOf(m Metric) kernel { return plainKernel(m) }
