package vfs

import (
	"errors"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func exchange(a, b string) error {
	err := retry(func() error {
		return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	})
	if noFlag(err) {
		return errors.ErrUnsupported
	}
	return err
}

func renameNew(old, new string) error {
	err := retry(func() error {
		return unix.Renameat2(unix.AT_FDCWD, old, unix.AT_FDCWD, new, unix.RENAME_NOREPLACE)
	})
	if noFlag(err) {
		return linkNew(old, new)
	}
	return err
}

// noFlag reports whether err means that the system or the file system does not support a flag of renameat2.
func noFlag(err error) bool {
	return err == unix.EINVAL || errors.Is(err, errors.ErrUnsupported)
}

func datasync(f *os.File) error {
	return control(f, func(fd uintptr) error {
		return retry(func() error { return unix.Fdatasync(int(fd)) })
	})
}

// setMtime sets the modification time of a file as futimens does. x/sys has only the variant with a path, which would
// need /proc.
func setMtime(f *os.File, t time.Time) error {
	mtime, err := unix.TimeToTimespec(t)
	if err != nil {
		return err
	}
	ts := [2]unix.Timespec{{Nsec: unix.UTIME_OMIT}, mtime}
	return control(f, func(fd uintptr) error {
		return retry(func() error {
			_, _, e := unix.Syscall6(unix.SYS_UTIMENSAT, fd, 0, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
			if e != 0 {
				return e
			}
			return nil
		})
	})
}

// lease requests a write lease. If another process opens the file meanwhile, the kernel sends a signal: SIGURG is
// chosen, which Go programs ignore, instead of SIGIO, which ends a process that has no handler for it.
func lease(f *os.File) (bool, error) {
	err := control(f, func(fd uintptr) error {
		if _, err := unix.FcntlInt(fd, unix.F_SETSIG, int(unix.SIGURG)); err != nil {
			return err
		}
		_, err := unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_WRLCK)
		return err
	})
	switch err {
	case nil:
		return true, nil
	case unix.EAGAIN:
		return false, nil
	case unix.EINVAL, unix.EACCES, unix.EPERM, unix.ENOSYS, unix.EOPNOTSUPP:
		// EINVAL: no leases on this file system or this type of file. EACCES: the file is another user's, and the
		// process lacks CAP_LEASE.
		return false, errors.ErrUnsupported
	}
	return false, err
}

func unlease(f *os.File) error {
	err := control(f, func(fd uintptr) error {
		_, err := unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_UNLCK)
		return err
	})
	if err == unix.EAGAIN { // there was no lease
		return nil
	}
	return err
}
