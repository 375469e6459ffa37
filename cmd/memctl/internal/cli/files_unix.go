//go:build unix

package cli

import (
	"math"

	"golang.org/x/sys/unix"
)

// OpenFiles returns how many files this process may have open, and the maximum to which it may raise that number. Both
// are 0 if they are unknown.
func OpenFiles() (soft, hard int64) {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 0, 0
	}
	return int64(min(l.Cur, math.MaxInt64)), int64(min(l.Max, math.MaxInt64))
}
