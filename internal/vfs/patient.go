package vfs

import "time"

// Patient returns fsys with a limit on how long an open waits for a lease (F_SETLEASE) that another process has on the
// file. Without the limit a process that does not respond delays each open by /proc/sys/fs/lease-break-time, 45 s by
// default. An open that fails for this reason returns an *errs.LockError that names the file and the holder. File
// systems without leases are returned unchanged.
func Patient(fsys FS, wait time.Duration) FS {
	if w, ok := fsys.(interface {
		Patient(wait time.Duration) FS
	}); ok {
		return w.Patient(wait)
	}
	b, ok := extended(fsys)
	if !ok {
		return fsys
	}
	b.patience = newPatience(wait)
	return b
}
