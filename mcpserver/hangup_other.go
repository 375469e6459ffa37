//go:build unix && !linux

package mcpserver

// peerClosed is 0, because on this system poll always reports a hang-up.
const peerClosed = 0
