package yield

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Turns says when the next turn of others is due. The zero value is ready, and is for one goroutine.
type Turns struct{ next time.Time }

// One's own turn lasts so long at least, and no longer than most: a process may have been stopped meanwhile.
const (
	least = 100 * time.Microsecond
	most  = time.Second
)

// Always has each Give give one. It is for tests.
var Always atomic.Bool

// Give gives others a turn, if it is due.
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
