package yield

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Turns records when the next turn of others is due. The zero value is ready for use by one goroutine.
type Turns struct{ next time.Time }

// The minimum and the maximum duration of one's own turn: a process may have been stopped meanwhile.
const (
	least = 100 * time.Microsecond
	most  = time.Second
)

// Always makes each Give give a turn. It is for tests.
var Always atomic.Bool

// Give gives others a turn, if one is due.
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
