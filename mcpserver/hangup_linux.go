package mcpserver

import "golang.org/x/sys/unix"

// peerClosed asks for the end of a socket whose other end only reads from here on.
const peerClosed = unix.POLLRDHUP
