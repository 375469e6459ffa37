package main

import (
	"time"

	"github.com/varve-db/varve/internal/vfs"
)

// uptime is the time of all processes, in which seconds are counted: the machine's, which nobody sets; by the wall
// clock only where there is none.
var uptime = func() func() time.Duration {
	if of := vfs.Uptime(); of != nil {
		return of
	}
	return func() time.Duration { return time.Duration(time.Now().UnixNano()) }
}()
