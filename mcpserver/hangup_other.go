//go:build unix && !linux

package mcpserver

// peerClosed is 0: on this system, poll reports a hang-up without being asked for it.
const peerClosed = 0
