package postgres_test

import "syscall"

// dieWithParent makes sure that a server does not outlive a test binary that was killed.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
