package vfs

import (
	"time"

	"golang.org/x/sys/windows"
)

// Uptime returns a clock that counts from the machine's boot, also while it sleeps and independently of the wall clock,
// the same for all processes; nil if there is none.
func Uptime() func() time.Duration { return windows.DurationSinceBoot }
