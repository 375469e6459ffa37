package vfs

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

func exchange(a, b string) error {
	return renamex(a, b, unix.RENAME_SWAP)
}

func renameNew(old, new string) error {
	err := renamex(old, new, unix.RENAME_EXCL)
	if errors.Is(err, errors.ErrUnsupported) {
		return linkNew(old, new)
	}
	return err
}

func renamex(a, b string, flag uint32) error {
	err := retry(func() error { return unix.RenamexNp(a, b, flag) })
	if err == unix.EINVAL || err == unix.ENOTSUP {
		return errors.ErrUnsupported
	}
	return err
}

// datasync calls os.File.Sync, which is F_FULLFSYNC on darwin; fsync and fdatasync only reach the cache of the drive.
func datasync(f *os.File) error { return bare(f.Sync()) }

// setMtime sets the modification time of a file to the microsecond, because x/sys has no futimens for darwin. The store
// needs no more.
func setMtime(f *os.File, t time.Time) error {
	var st unix.Stat_t
	return control(f, func(fd uintptr) error {
		if err := retry(func() error { return unix.Fstat(int(fd), &st) }); err != nil {
			return err
		}
		tv := []unix.Timeval{
			unix.NsecToTimeval(st.Atim.Nano()),
			unix.NsecToTimeval(t.UnixNano()),
		}
		return retry(func() error { return unix.Futimes(int(fd), tv) })
	})
}

func lease(*os.File) (bool, error) { return false, errors.ErrUnsupported }
func unlease(*os.File) error       { return errors.ErrUnsupported }
