//go:build linux || darwin

package vector

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestKernelsStayInside puts rows and query directly before a page that may not be read.
func TestKernelsStayInside(t *testing.T) {
	t.Parallel()
	page := unix.Getpagesize()
	end := func() []byte { // the last bytes before a forbidden page
		b, err := unix.Mmap(-1, 0, 2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := unix.Munmap(b); err != nil {
				t.Error(err)
			}
		})
		if err := unix.Mprotect(b[page:], unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
		return b[:page:page]
	}
	rows, query := end(), end()
	for _, m := range []Metric{IP, L2} {
		for _, k := range []kernel{plainKernel(m), kernelOf(m)} {
			for d := 1; d <= 300; d++ {
				for _, n := range []int{1, 3} {
					q := floats(query[page-4*d:])
					k(q, rows[page-4*d*n:], make([]float32, n)) // a fault ends the test
				}
			}
		}
	}
}
