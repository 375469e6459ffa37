//go:build linux || darwin

package vfs

import (
	"io/fs"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// lockFile is a lock file with a bare descriptor: flock blocks a thread, so os.File would only add cost. Its owner must
// not use it after Close.
type lockFile struct {
	fd       int
	closed   atomic.Bool
	dev, ino uint64
	way      opener
}

func openLockFile(open opener, p *patience, name string, perm fs.FileMode) (*lockFile, error) {
	w := open.orPlain()
	if i, err := w.lstat(name); err == nil && !i.Mode.IsRegular() { // before opening it, as in openFile
		return nil, &NotRegularError{Path: name, Mode: i.Mode}
	}
	fd, err := p.open(name, func() (int, error) { return w.fd(name, unix.O_RDWR|unix.O_CREAT|unix.O_NONBLOCK, perm) })
	writes := err == nil
	if err == unix.EROFS || err == unix.EACCES { // a reader must be able to lock the store too
		if ro, roErr := w.fd(name, unix.O_RDONLY|unix.O_NONBLOCK, 0); roErr == nil {
			fd, err = ro, nil
		}
	}
	if IsLeased(err) {
		return nil, err
	}
	if err != nil {
		return nil, pathError("open", name, err)
	}
	st, err := regularFD(fd, name)
	if err == nil && writes { // the file may have been created just now
		err = pathError("chmod", name, owned(fd, perm))
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &lockFile{fd: fd, dev: uint64(st.Dev), ino: st.Ino, way: open}, nil
}

func (f *lockFile) tryLock(mode Mode) (bool, error) {
	err := f.flock(flockOp(mode) | unix.LOCK_NB)
	if err == unix.EWOULDBLOCK {
		return false, nil
	}
	return err == nil, err
}

func (f *lockFile) lock(mode Mode) error { return f.flock(flockOp(mode)) }
func (f *lockFile) unlock() error        { return f.flock(unix.LOCK_UN) }
func (f *lockFile) Close() error         { return closeOnce(&f.closed, f.fd) }

func (f *lockFile) flock(op int) error {
	return retry(func() error { return unix.Flock(f.fd, op) })
}

// isNamed reports whether the path name still leads to this open file.
func (f *lockFile) isNamed(name string) bool {
	i, err := lstatBy(f.way, name)
	return err == nil && i.Ino == f.ino && i.Dev == f.dev
}

// sameAsNamed reports whether the path name still leads to the open file that the parameter mine describes.
func sameAsNamed(w opener, mine fs.FileInfo, name string) bool {
	st, ok := mine.Sys().(*syscall.Stat_t)
	i, err := lstatBy(w, name)
	return ok && err == nil && i.Ino == st.Ino && i.Dev == uint64(st.Dev)
}

func flockOp(mode Mode) int {
	if mode == ModeExclusive {
		return unix.LOCK_EX
	}
	return unix.LOCK_SH
}
