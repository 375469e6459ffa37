package vfs

import (
	"time"

	"golang.org/x/sys/windows"
)

// Uptime returns a function that returns the time since the machine's boot. The time continues while the machine
// sleeps, does not depend on the wall clock, and is the same for all processes.
func Uptime() func() time.Duration { return windows.DurationSinceBoot }
