package storetest

import "golang.org/x/sys/unix"

// Monotonic returns the time of a clock that all processes of one boot share, in nanoseconds. It returns false if the
// system does not provide this clock.
func Monotonic() (int64, bool) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0, false
	}
	return t.Nano(), true
}
