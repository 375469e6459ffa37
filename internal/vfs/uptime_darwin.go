package vfs

import "time"

// clockMonotonic is CLOCK_MONOTONIC of <time.h>, which continues while the machine sleeps.
const clockMonotonic = 6

// Uptime returns a function that returns the time since the machine's boot. The time continues while the machine
// sleeps, does not depend on the wall clock, and is the same for all processes. Uptime returns nil if the system has
// no such clock.
func Uptime() func() time.Duration { return clockOf(clockMonotonic) }
