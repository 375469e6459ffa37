package varve

import (
	"sync/atomic"
	"time"

	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
)

// clock is a clock that a test moves. The goroutines of a store read it too.
type clock struct{ at, up atomic.Int64 }

func clockAt(t time.Time) *clock {
	c := &clock{}
	c.at.Store(t.UnixNano())
	return c
}

func (c *clock) now() time.Time { return time.Unix(0, c.at.Load()).UTC() }

func (c *clock) add(d time.Duration) { c.up.Add(int64(d)); c.at.Add(int64(d)) }

// jump moves the clock alone: the machine's uptime does not follow.
func (c *clock) jump(d time.Duration) { c.at.Add(int64(d)) }

// on returns the options of a store on a machine with this clock and its uptime.
func (c *clock) on(o *Options) *Options {
	up := func() time.Duration { return time.Duration(c.up.Load()) + time.Hour }
	return storetest.In(o, storetest.Environment{System: vfs.System{Uptime: up}})
}

// tick is now for who wants every look to be a microsecond later.
func (c *clock) tick() time.Time { return time.Unix(0, c.at.Add(int64(time.Microsecond))).UTC() }
