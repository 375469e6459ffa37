package vfs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"
)

// flock is the Lock of the operating system; its design is described in the package comment.
type flock struct {
	name     string
	perm     fs.FileMode
	look     func(name string) error // checks the path before each open; nil: no check
	way      opener                  // how the file is opened; nil: by its path
	patience *patience
	turn     chan struct{} // holds one token, which is taken by the caller that holds the lock or waits for it

	mu      sync.Mutex
	keep    bool     // KeepOpen was called: fd stays open between acquires
	fd      lockable // file handle; nil until needed, and after Close
	spare   lockable // an unlocked descriptor for the next wait, if keep; may be nil
	held    bool
	closed  bool
	waiters [2]*waiter // goroutines blocked in flock, by mode
}

// lockable is an open lock file. It is either a lockFile, which is a bare descriptor that stays open, or a freshLock,
// which is used for only one acquire.
type lockable interface {
	tryLock(mode Mode) (bool, error)
	lock(mode Mode) error
	unlock() error
	isNamed(name string) bool // reports whether name still leads to this file
	Close() error
}

// waiter is a goroutine that is blocked in flock. wanted and granted are guarded by flock.mu.
type waiter struct {
	fd      lockable
	wanted  bool          // a caller waits for the lock
	granted bool          // the lock was passed to the waiting caller
	err     error         // the error of flock
	done    chan struct{} // replaced by each caller that starts to wait; closed on success or failure
}

func openLock(name string, perm fs.FileMode) (Lock, error) {
	return openLockBy(nil, nil, nil, name, perm)
}

func openLockBy(look func(name string) error, way opener, p *patience, name string, perm fs.FileMode) (Lock, error) {
	l := &flock{name: name, perm: perm, look: look, way: way, patience: p, turn: make(chan struct{}, 1)}
	if err := l.mayOpen(); err != nil {
		return nil, err
	}
	// Opened now, to create the file, and so that a caller without permission gets the error now.
	f, err := openLockFile(way, p, name, perm)
	if err != nil {
		return nil, err
	}
	return l, f.Close()
}

func (l *flock) mayOpen() error {
	if l.look == nil {
		return nil
	}
	if err := l.look(l.name); err != nil {
		return pathError("open", l.name, err)
	}
	return nil
}

func (l *flock) open() (lockable, error) {
	if err := l.mayOpen(); err != nil {
		return nil, err
	}
	// The library opens by path, which leads elsewhere if the store's folder was replaced.
	if !l.keep && !strays(l.way, l.name) {
		return openFresh(l.way, l.patience, l.name, l.perm)
	}
	f, err := openLockFile(l.way, l.patience, l.name, l.perm)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// KeepOpen opens the lock's descriptor for all later acquires, so that none of them fails because the process cannot
// open more files.
func (l *flock) KeepOpen() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keep || l.closed {
		return nil
	}
	l.keep = true
	fd, err := l.open()
	if err != nil {
		return err
	}
	l.fd = fd
	return nil
}

func (l *flock) Lock(ctx context.Context, mode Mode) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	err := l.lock(ctx, mode)
	if err != nil {
		<-l.turn
	}
	return err
}

func (l *flock) lock(ctx context.Context, mode Mode) error {
	for {
		ok, err := l.try(mode)
		if ok || err != nil {
			return err
		}
		w, err := l.startWaiting(mode)
		if err != nil {
			return err
		}
		if err := l.wait(ctx, w); err != nil {
			return err
		}
		if ok, err := l.adopt(w); ok || err != nil {
			return err
		}
	}
}

func (l *flock) TryLock(mode Mode) (bool, error) {
	select {
	case l.turn <- struct{}{}:
	default:
		return false, nil
	}
	ok, err := l.try(mode)
	if !ok {
		<-l.turn
	}
	return ok, err
}

// try tries to lock the file without waiting. The caller must have taken the token of l.turn.
func (l *flock) try(mode Mode) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		if l.closed {
			return false, l.errClosed()
		}
		if l.fd == nil {
			fd, err := l.open()
			if err != nil {
				return false, err
			}
			l.fd = fd
		}
		ok, err := l.fd.tryLock(mode)
		if IsLeased(err) {
			return false, err
		}
		if err != nil {
			return false, pathError("lock", l.name, err)
		}
		// Whether granted or not, only the file that the path names counts.
		if l.stale() {
			continue
		}
		if l.held = ok; !ok {
			l.letGo()
		}
		return ok, nil
	}
}

// letGo closes the descriptor of the lock, unless the descriptor stays open for later acquires (see KeepOpen).
func (l *flock) letGo() {
	if !l.keep {
		l.fd.Close()
		l.fd = nil
	}
}

// stale reports whether the path of the lock leads to another file by now than the open descriptor. If so, it closes
// the descriptor.
func (l *flock) stale() bool {
	if l.fd.isNamed(l.name) {
		return false
	}
	l.fd.Close() // and with it a lock on the wrong file
	l.fd = nil
	return true
}

// startWaiting returns the goroutine that waits for the lock in this mode. If no goroutine waits yet, it starts one.
// Otherwise it counts one more caller for the existing goroutine.
func (l *flock) startWaiting(mode Mode) (*waiter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, l.errClosed()
	}
	w := l.waiters[mode]
	if w == nil {
		fd := l.spare
		l.spare = nil
		if fd == nil {
			var err error
			if fd, err = l.open(); err != nil {
				return nil, err
			}
		}
		w = &waiter{fd: fd}
		l.waiters[mode] = w
		go l.block(w, mode)
	}
	w.wanted = true
	w.done = make(chan struct{})
	return w, nil
}

// block waits in the system's flock. When it gets the lock, it passes the lock to a caller that still wants the lock.
func (l *flock) block(w *waiter, mode Mode) {
	err := w.fd.lock(mode)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiters[mode] = nil
	if !w.wanted || l.closed || err != nil {
		w.fd.Close() // closing releases the lock
	} else {
		w.granted = true
	}
	if w.wanted {
		w.err = err
		close(w.done)
	}
}

func (l *flock) wait(ctx context.Context, w *waiter) error {
	select {
	case <-w.done:
	case <-ctx.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		w.wanted = false
		if w.granted { // it was granted at the same moment
			w.fd.Close()
		}
		return ctx.Err()
	}
	if w.err != nil {
		return pathError("lock", l.name, w.err)
	}
	return nil
}

// adopt takes the descriptor of a waiter that was granted the lock as the descriptor of the handle. It returns false if
// the file at the path was replaced during the wait, because the lock has no effect then.
func (l *flock) adopt(w *waiter) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		w.fd.Close()
		return false, l.errClosed()
	}
	old := l.fd
	l.fd = w.fd
	if l.stale() {
		l.fd = old // will be found stale as well
		return false, nil
	}
	switch {
	case old == nil:
	case !l.keep:
		old.Close()
	default:
		if l.spare != nil {
			l.spare.Close()
		}
		l.spare = old // the same file; otherwise found stale after the next wait
	}
	l.held = true
	return true, nil
}

func (l *flock) Unlock() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.held {
		return pathError("unlock", l.name, errNotHeld)
	}
	err := l.fd.unlock()
	if err != nil || !l.keep {
		l.fd.Close() // releases the lock in any case
		l.fd = nil
	}
	l.held = false
	<-l.turn
	return pathError("unlock", l.name, err)
}

// Close releases the lock. A caller that waits in Lock gets an error. Close does not wait for a goroutine that is
// still blocked in the system's flock: such a goroutine ends when its call returns.
func (l *flock) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return l.errClosed()
	}
	l.closed = true
	for _, w := range l.waiters {
		if w != nil && w.wanted {
			w.wanted, w.err = false, fs.ErrClosed
			close(w.done)
		}
	}
	var err error
	for _, fd := range []lockable{l.fd, l.spare} {
		if fd != nil {
			err = errors.Join(err, fd.Close())
		}
	}
	l.fd, l.spare = nil, nil
	if l.held {
		l.held = false
		<-l.turn
	}
	return err
}

func (l *flock) errClosed() error { return pathError("lock", l.name, os.ErrClosed) }

var errNotHeld = errors.New("the lock is not held")
