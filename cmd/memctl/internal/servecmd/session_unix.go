//go:build unix

package servecmd

import "syscall"

// ownSession returns what starts a program in a session of its own, to which no signal of this terminal goes.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
