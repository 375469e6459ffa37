//go:build linux || darwin

package vfs

import "syscall"

var (
	diskFull = []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT}
	refused  = []syscall.Errno{syscall.EACCES, syscall.EPERM, syscall.EROFS}
)
