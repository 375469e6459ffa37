package turns

import (
	"runtime"
	"time"
)

// Turns says when the next turn of others is due. The zero value is ready, and is for one goroutine.
type Turns struct{ next time.Time }

// Least is how long one's own turn lasts at least. Only tests change it.
var Least = 100 * time.Microsecond

// Give gives others a turn, if it is due.
func (t *Turns) Give() {
	now := time.Now()
	if now.Before(t.next) {
		return
	}
	runtime.Gosched()
	back := time.Now()
	t.next = back.Add(max(back.Sub(now), Least))
}
