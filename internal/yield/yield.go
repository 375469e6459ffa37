package yield

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Turns records when a goroutine must next yield to other goroutines. The zero value is ready for use; each goroutine
// needs a Turns of its own.
type Turns struct{ next time.Time }

// The minimum and the maximum duration of a goroutine's own turn between two yields. The maximum matters if the
// process was stopped meanwhile.
const (
	least = 100 * time.Microsecond
	most  = time.Second
)

// Always makes each call of Give yield. It is for tests.
var Always atomic.Bool

// Give yields to other goroutines if the goroutine has run long enough since its last yield: as long as that yield
// took, but at least 100 µs and at most 1 s.
func (t *Turns) Give() {
	if Always.Load() {
		runtime.Gosched()
		return
	}
	now := time.Now()
	if now.Before(t.next) {
		return
	}
	runtime.Gosched()
	back := time.Now()
	t.next = back.Add(min(max(back.Sub(now), least), most))
}
