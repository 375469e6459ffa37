//go:build unix

package mcpserver

import (
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// hungUp reports whether the other end of the pipe, socket or terminal r is closed, even while unread data
// remains. It returns false if it cannot find this out.
func hungUp(r io.Reader) bool {
	f, ok := r.(syscall.Conn)
	if !ok {
		return false
	}
	c, err := f.SyscallConn()
	if err != nil {
		return false
	}
	gone := false
	err = c.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd), Events: peerClosed}}
		n, err := unix.Poll(p, 0)
		gone = err == nil && n > 0 && p[0].Revents&(peerClosed|unix.POLLHUP|unix.POLLERR) != 0
	})
	return err == nil && gone
}
