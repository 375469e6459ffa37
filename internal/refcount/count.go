package refcount

import "sync/atomic"

// Count is a number of references. The zero value has none, and Retain fails.
type Count struct{ n atomic.Int64 }

// Start sets the first reference.
func (c *Count) Start() { c.n.Store(1) }

// Retain takes another reference. It returns false if the last one was released.
func (c *Count) Retain() bool {
	for {
		n := c.n.Load()
		if n <= 0 {
			return false
		}
		if c.n.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release releases a reference and reports whether it was the last.
func (c *Count) Release() (last bool) { return c.n.Add(-1) == 0 }
