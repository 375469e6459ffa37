package mcpserver

import "golang.org/x/sys/unix"

// peerClosed is the poll event for a socket whose other end has stopped writing.
const peerClosed = unix.POLLRDHUP
