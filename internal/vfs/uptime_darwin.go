package vfs

import "time"

// clockMonotonic is CLOCK_MONOTONIC of <time.h>, which continues while the machine sleeps.
const clockMonotonic = 6

// Uptime returns a clock that counts from the machine's boot, also while it sleeps and independently of the wall clock,
// the same for all processes; nil if there is none.
func Uptime() func() time.Duration { return clockOf(clockMonotonic) }
