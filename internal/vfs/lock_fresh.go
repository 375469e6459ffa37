package vfs

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	gofrs "github.com/gofrs/flock"
)

// freshLock is a lock file that serves one acquire, with gofrs/flock. Its handle is opened by the acquire and closed by
// unlock or Close, so that the library's treatment of a handle that is locked already (a second Lock succeeds, a
// refused upgrade loses the lock) has no effect.
type freshLock struct {
	name     string
	perm     fs.FileMode
	way      opener // how the file is opened; nil: by its path
	patience *patience
	f        *gofrs.Flock
}

func openFresh(way opener, p *patience, name string, perm fs.FileMode) (lockable, error) {
	if err := regularAt(way, name); err != nil { // before opening it, as in openLockFile
		return nil, err
	}
	flag := os.O_RDWR | lockFlags
	if way == nil {
		// with an opener the file is created by it: the library would create it wherever the path leads by then
		flag |= os.O_CREATE
	}
	return &freshLock{name, perm, way, p, gofrs.New(name, gofrs.SetFlag(flag), gofrs.SetPermissions(perm))}, nil
}

// regularAt returns a *NotRegularError if name is a file that is not regular. A missing file is accepted: it is
// created.
func regularAt(w opener, name string) error {
	if i, err := lstatBy(w, name); err == nil && !i.Mode.IsRegular() {
		return &NotRegularError{Path: name, Mode: i.Mode}
	}
	return nil
}

func (l *freshLock) tryLock(mode Mode) (bool, error) {
	return l.acquire(func(f *gofrs.Flock) (bool, error) {
		if mode == ModeExclusive {
			return f.TryLock()
		}
		return f.TryRLock()
	})
}

func (l *freshLock) lock(mode Mode) error {
	_, err := l.acquire(func(f *gofrs.Flock) (bool, error) {
		if mode == ModeExclusive {
			return true, f.Lock()
		}
		return true, f.RLock()
	})
	return err
}

func (l *freshLock) acquire(tryLock func(*gofrs.Flock) (bool, error)) (bool, error) {
	ok, err := l.patience.lock(l.name,
		func() (bool, error) { return uninterrupted(func() (bool, error) { return tryLock(l.f) }) })
	if l.way != nil && errors.Is(err, fs.ErrNotExist) {
		made, merr := openLockFile(l.way, l.patience, l.name, l.perm)
		if merr != nil {
			return false, merr
		}
		_ = made.Close()
		ok, err = uninterrupted(func() (bool, error) { return tryLock(l.f) })
	}
	if errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EACCES) { // a reader must be able to lock the store too
		ro := gofrs.New(l.name, gofrs.SetFlag(os.O_RDONLY|lockFlags))
		if got, roErr := uninterrupted(func() (bool, error) { return tryLock(ro) }); roErr == nil {
			l.f, ok, err = ro, got, nil
		}
	}
	if !ok || err != nil {
		return false, err
	}
	// The opened file may differ from the one that was checked.
	i, err := l.f.Stat()
	if err == nil && !i.Mode().IsRegular() {
		err = &NotRegularError{Path: l.name, Mode: i.Mode()}
	}
	if err != nil {
		return false, errors.Join(err, l.Close())
	}
	return true, nil
}

func uninterrupted(tryLock func() (bool, error)) (ok bool, err error) {
	for ok, err = tryLock(); errors.Is(err, syscall.EINTR); ok, err = tryLock() {
	}
	return ok, err
}

func (l *freshLock) unlock() error {
	_, err := uninterrupted(func() (bool, error) { return true, l.f.Unlock() })
	return err
}

// isNamed reports whether name still leads to the locked file. If the handle did not get the lock, isNamed returns
// true, because the handle had just opened the file at that path.
func (l *freshLock) isNamed(name string) bool {
	if !l.f.Locked() && !l.f.RLocked() {
		return true
	}
	mine, err := l.f.Stat()
	return err == nil && sameAsNamed(l.way, mine, name)
}

func (l *freshLock) Close() error { return l.unlock() }
