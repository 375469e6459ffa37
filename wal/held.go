package wal

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
)

// Held proves that flush.lock is held. A function that only the holder may call takes a Held. Only LockFlush
// and TryLockFlush return one, and Unlock ends it: the methods of this package refuse a Held that was unlocked
// or belongs to another log.
type Held struct {
	l        *FileLog
	unlocked atomic.Bool
	rescue   bool // flush.lock is held for a rescue (Options.Rescue): the lock file itself is gone
}

// errNotHeld reports a bug in the caller.
var errNotHeld = errors.New("wal: flush.lock is not held: the Held was unlocked, or belongs to another log")

// LockFlush takes flush.lock. Only its holder puts files in place, writes the index and releases the log.
func (l *FileLog) LockFlush(ctx context.Context) (*Held, error) {
	if l.o.ReadOnly {
		return nil, errs.ErrReadOnly
	}
	if err := l.lock(ctx, roleFlush, vfs.ModeExclusive); err != nil {
		return nil, err
	}
	return l.heldNow()
}

// LockFlushUnless is like LockFlush, for a caller that no longer needs the lock once done returns true. It calls done
// repeatedly while another process holds the lock, but not with Options.Inline. When done returns true,
// LockFlushUnless returns nil without an error.
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

// heldNow returns a Held, immediately after flush.lock was taken. If the folder has another log by now, it releases
// the lock and returns an error.
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

// proves returns an error unless h proves that flush.lock of l is held.
func (h *Held) proves(l *FileLog) error {
	if h == nil || h.l != l || h.unlocked.Load() {
		return errNotHeld
	}
	if h.rescue {
		return nil
	}
	return l.Folder().InPlace()
}
