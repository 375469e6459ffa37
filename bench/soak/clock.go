package main

import (
	"time"

	"github.com/varve-db/varve/internal/vfs"
)

// uptime returns the time by which all processes count seconds: the uptime of the machine, which cannot be set, or
// the wall clock where there is no uptime.
var uptime = func() func() time.Duration {
	if of := vfs.Uptime(); of != nil {
		return of
	}
	return func() time.Duration { return time.Duration(time.Now().UnixNano()) }
}()
