package vfs

import (
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// lockFile is a lock file that is opened without FILE_SHARE_DELETE, so no other file can take its name while it is
// open.
type lockFile struct{ f *os.File }

func openLockFile(_ opener, _ *patience, name string, perm fs.FileMode) (*lockFile, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, perm)
	if err != nil {
		return nil, err
	}
	return &lockFile{f}, nil
}

func (f *lockFile) tryLock(mode Mode) (bool, error) {
	err := f.lockEx(flags(mode) | windows.LOCKFILE_FAIL_IMMEDIATELY)
	if err == windows.ERROR_LOCK_VIOLATION || err == windows.ERROR_IO_PENDING {
		return false, nil
	}
	return err == nil, err
}

func (f *lockFile) lock(mode Mode) error { return f.lockEx(flags(mode)) }

func (f *lockFile) lockEx(flags uint32) error {
	return windows.LockFileEx(windows.Handle(f.f.Fd()), flags, 0, 1, 0, &windows.Overlapped{})
}

func (f *lockFile) unlock() error {
	return windows.UnlockFileEx(windows.Handle(f.f.Fd()), 0, 1, 0, &windows.Overlapped{})
}

func (f *lockFile) Close() error { return f.f.Close() }

func (f *lockFile) isNamed(string) bool { return true }

// sameAsNamed reports whether the path name still leads to the open file that the parameter mine describes.
func sameAsNamed(_ opener, mine fs.FileInfo, name string) bool {
	named, err := os.Lstat(name)
	return err == nil && os.SameFile(mine, named)
}

// strays returns false: Windows has no handles of folders that a path could differ from.
func strays(opener, string) bool { return false }

func flags(mode Mode) uint32 {
	if mode == ModeExclusive {
		return windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	return 0
}
