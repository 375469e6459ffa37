package servecmd

import "syscall"

// ownSession returns what starts a program in a process group of its own, to which no Ctrl-C of this console goes.
func ownSession() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
