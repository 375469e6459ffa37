package servecmd

import "syscall"

// ownSession returns the attributes of a process that starts in a process group of its own, so that it gets no Ctrl-C
// of this console.
func ownSession() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
