package vfs

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// initialTime is the time namespace whose clocks are the machine's own; its number is fixed in the kernel
// (PROC_TIME_INIT_INO).
const initialTime = "time:[4026531834]"

// Uptime returns a clock that counts from the machine's boot, also while it sleeps and independently of the wall clock,
// the same for all processes; nil if there is none.
func Uptime() func() time.Duration {
	if space, err := os.Readlink("/proc/self/ns/time"); err == nil && space != initialTime {
		return nil // offset against that of other processes with the same boot id
	}
	return clockOf(unix.CLOCK_BOOTTIME)
}
