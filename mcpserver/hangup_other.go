//go:build unix && !linux

package mcpserver

// peerClosed is 0: poll reports a hang-up without being asked for it.
const peerClosed = 0
