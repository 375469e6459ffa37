//go:build !linux

package vfs

// LockedBy returns 0: only Linux reports the process that holds a lock.
func LockedBy(string) (pid int) { return 0 }

// leasedBy returns 0: only Linux reports the process that has a lease.
func leasedBy(string) (pid int) { return 0 }
