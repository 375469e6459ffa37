package proofs

import (
	"runtime"
	"sync/atomic"
	"testing"
)

// Turns is how often another goroutine had the only processor while f ran, which must make no call of the
// system. What runs beside commits gives it up itself: the runtime would take it every ten milliseconds.
// The test must not be parallel.
func Turns(t testing.TB, f func()) int64 {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var turns atomic.Int64
	var done atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for !done.Load() {
			turns.Add(1)
			runtime.Gosched()
		}
	}()
	f()
	n := turns.Load()
	done.Store(true)
	<-ended
	return n
}
