package yield

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Turns records when a goroutine must next yield to others. The zero value is ready for use by one goroutine.
type Turns struct{ next time.Time }

// The minimum and the maximum duration of a goroutine's own turn between two yields. The maximum matters if the
// process was stopped meanwhile.
const (
	least = 100 * time.Microsecond
	most  = time.Second
)

// Always makes each call of Give yield. It is for tests.
var Always atomic.Bool

// Give yields to other goroutines, if that is due.
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
