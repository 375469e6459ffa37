package proofs

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/varve-db/varve/internal/yield"
)

// Turns runs f on a single processor, and returns the number of times that another goroutine ran meanwhile. f must make
// no system call, and must yield as often as it can. The test must not be parallel.
func Turns(t testing.TB, f func()) int64 {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	yield.Always.Store(true)
	var others atomic.Int64
	var over atomic.Bool
	ended := make(chan struct{})
	defer func() {
		over.Store(true)
		<-ended
		yield.Always.Store(false)
	}()
	go func() {
		defer close(ended)
		for !over.Load() {
			others.Add(1)
			runtime.Gosched()
		}
	}()
	f()
	return others.Load()
}
