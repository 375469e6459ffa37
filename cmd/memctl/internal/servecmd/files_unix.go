//go:build unix

package servecmd

import "golang.org/x/sys/unix"

// connections returns how many connections a server may have open: at most half of the files that the process may
// have open, so that the others remain for stores. 0: the default of the server.
func connections() int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil || l.Cur > 8192 {
		return 0
	}
	return max(int(l.Cur)/2, 1)
}
