//go:build unix

package servecmd

import "syscall"

// ownSession returns the attributes of a process that starts in a session of its own, so that it gets no signal of this
// terminal.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
