package wal

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
)

// Held proves that the caller holds flush.lock. Methods that only the holder may call take a Held. Only LockFlush,
// LockFlushUnless and TryLockFlush return one. The methods of this package return an error for a Held that was unlocked
// or that belongs to another log.
type Held struct {
	l        *FileLog
	unlocked atomic.Bool
	// This is the Held of a rescue (Options.Rescue), which runs without flush.lock because the lock file
	// itself is gone.
	rescue bool
}

// errNotHeld is the error for a Held that does not prove that flush.lock is held. It means that the caller has a bug.
var errNotHeld = errors.New("wal: flush.lock is not held: the Held was unlocked or belongs to another log")

// LockFlush waits for flush.lock and takes it. Only the holder of flush.lock may put document files in place, write the
// index and release parts of the log.
func (l *FileLog) LockFlush(ctx context.Context) (*Held, error) {
	if l.o.ReadOnly {
		return nil, errs.ErrReadOnly
	}
	if err := l.lock(ctx, roleFlush, vfs.ModeExclusive); err != nil {
		return nil, err
	}
	return l.heldNow()
}

// LockFlushUnless is like LockFlush, but gives up as soon as done returns true, because the caller then no longer
// needs the lock. In that case it returns nil without an error, or the error for a log that was replaced in the
// meantime. While another process holds the lock, LockFlushUnless calls done repeatedly; with Options.Inline it never
// calls done.
func (l *FileLog) LockFlushUnless(ctx context.Context, done func() bool) (*Held, error) {
	if l.o.ReadOnly {
		return nil, errs.ErrReadOnly
	}
	held, err := l.lockUnless(ctx, roleFlush, vfs.ModeExclusive, done)
	switch {
	case err != nil:
		return nil, err
	case !held:
		return nil, l.lost() // done read a page that may belong to another log by now
	}
	return l.heldNow()
}

// TryLockFlush takes flush.lock if it is free. Otherwise it returns nil without an error.
func (l *FileLog) TryLockFlush() (*Held, error) {
	if l.o.ReadOnly {
		return nil, errs.ErrReadOnly
	}
	if err := l.Folder().InPlace(); err != nil {
		return nil, err
	}
	ok, err := l.locks[roleFlush].TryLock(vfs.ModeExclusive)
	if err != nil || !ok {
		return nil, err
	}
	l.took(roleFlush)
	return l.heldNow()
}

// heldNow returns the Held of a caller that has just taken flush.lock. If the log was replaced, or recovered by another
// process, while the caller waited, heldNow releases the lock and returns an error.
func (l *FileLog) heldNow() (*Held, error) {
	l.place.begins()
	err := l.Folder().InPlace()
	if err == nil {
		err = l.stillOurs()
	}
	if err != nil {
		l.unlock(roleFlush)
		l.place.ends()
		return nil, err
	}
	return &Held{l: l}, nil
}

// Unlock releases flush.lock. A second call does nothing.
func (h *Held) Unlock() {
	if h.unlocked.CompareAndSwap(false, true) {
		h.l.unlock(roleFlush)
		h.l.place.ends()
	}
}

// proves returns an error if h does not prove that flush.lock of the log l is held.
func (h *Held) proves(l *FileLog) error {
	if h == nil || h.l != l || h.unlocked.Load() {
		return errNotHeld
	}
	if h.rescue {
		return nil
	}
	return l.Folder().InPlace()
}
