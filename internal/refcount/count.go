package refcount

import "sync/atomic"

// Count is a number of references. The zero value has none and gives none away.
type Count struct{ n atomic.Int64 }

// Start gives the first one.
func (c *Count) Start() { c.n.Store(1) }

// Retain takes another one. It fails when the last one is gone.
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

// Release gives one back and says whether it was the last.
func (c *Count) Release() (last bool) { return c.n.Add(-1) == 0 }
