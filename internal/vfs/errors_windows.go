package vfs

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// diskFull and the other variables list the portable error numbers besides the system's own, because the simulated file
// systems use them.
var (
	diskFull = []syscall.Errno{
		syscall.ENOSPC, syscall.EDQUOT,
		windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL,
		windows.ERROR_DISK_QUOTA_EXCEEDED, windows.ERROR_NOT_ENOUGH_QUOTA,
	}
	refused = []syscall.Errno{
		syscall.EACCES, syscall.EPERM, syscall.EROFS,
		windows.ERROR_ACCESS_DENIED, windows.ERROR_WRITE_PROTECT,
	}
)
