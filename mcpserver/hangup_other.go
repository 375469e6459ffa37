//go:build unix && !linux

package mcpserver

// peerClosed is the poll event that is requested to learn that the other end of a socket has stopped writing. It is 0
// here, because on this system poll reports a hang-up without a request.
const peerClosed = 0
