package vfs

import "time"

// clockMonotonic is CLOCK_MONOTONIC of <time.h>, which goes on while the machine sleeps.
const clockMonotonic = 6

// Uptime counts from the machine's boot, also while it sleeps, whatever becomes of the
// wall clock, and is the same for all processes; nil where nothing is.
func Uptime() func() time.Duration { return clockOf(clockMonotonic) }
