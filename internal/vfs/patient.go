package vfs

import "time"

// Patient returns fsys with a bound on how long an open waits for a lease (F_SETLEASE) that another
// process has on the file. Without the bound a process that does not answer delays each open by
// /proc/sys/fs/lease-break-time, 45 s unless set. An open that ends without the file is an
// *errs.LockError that names the file and the holder. File systems without leases stay as they are.
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
