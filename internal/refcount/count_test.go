package refcount

import (
	"sync"
	"testing"
)

// TestCount verifies that exactly one release is the last, in whatever order they come, and that no reference is taken
// after it.
func TestCount(t *testing.T) {
	var none Count
	if none.Retain() {
		t.Error("a reference to what was never there")
	}
	for range 200 {
		var c Count
		c.Start()
		last := make(chan bool, 9)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if c.Retain() {
					last <- c.Release()
				}
			})
		}
		last <- c.Release()
		wg.Wait()
		close(last)
		n := 0
		for is := range last {
			if is {
				n++
			}
		}
		if n != 1 || c.Retain() {
			t.Fatalf("%d were the last", n)
		}
	}
}
