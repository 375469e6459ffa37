package vfs

import (
	"time"

	"golang.org/x/sys/windows"
)

// Uptime counts from the machine's boot, also while it sleeps, whatever becomes of the
// wall clock, and is the same for all processes; nil where nothing is.
func Uptime() func() time.Duration { return windows.DurationSinceBoot }
