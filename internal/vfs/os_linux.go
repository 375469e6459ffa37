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

// noFlag: EINVAL is how a file system refuses a flag of renameat2 it does not know.
func noFlag(err error) bool {
	return err == unix.EINVAL || errors.Is(err, errors.ErrUnsupported)
}

func datasync(f *os.File) error {
	return control(f, func(fd uintptr) error {
		return retry(func() error { return unix.Fdatasync(int(fd)) })
	})
}

// setMtime is futimens. x/sys has only the form with a path, for which it would
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

// lease asks for a write lease. When a process opens the file meanwhile, the kernel sends us a
// signal: SIGURG, which Go programs ignore, and not SIGIO, which ends a process that has no handler
// for it.
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
		// EINVAL: no leases on this file system or this kind of file.
		// EACCES: neither our own file nor CAP_LEASE.
		return false, errors.ErrUnsupported
	}
	return false, err
}

func unlease(f *os.File) error {
	err := control(f, func(fd uintptr) error {
		_, err := unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_UNLCK)
		return err
	})
	if err == unix.EAGAIN { // there was none
		return nil
	}
	return err
}
