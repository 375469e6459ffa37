package varve

import (
	"sync/atomic"
	"time"
)

// clock is a clock that a test moves. The goroutines of a store read it too.
type clock struct{ at atomic.Int64 }

func clockAt(t time.Time) *clock {
	c := &clock{}
	c.at.Store(t.UnixNano())
	return c
}

func (c *clock) now() time.Time { return time.Unix(0, c.at.Load()).UTC() }

func (c *clock) add(d time.Duration) { c.at.Add(int64(d)) }

// tick is now for who wants every look to be a microsecond later.
func (c *clock) tick() time.Time { return time.Unix(0, c.at.Add(int64(time.Microsecond))).UTC() }
