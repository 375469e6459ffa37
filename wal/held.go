package wal

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
)

// Held proves that flush.lock is held. A function that may only be called by the holder takes one.
// Only LockFlush and TryLockFlush return one, and Unlock ends it: the methods of this package that
// take a Held refuse one that was unlocked or belongs to another log.
type Held struct {
	l        *FileLog
	unlocked atomic.Bool
	rescue   bool // see Options.Rescue: the lock itself is gone
}

// errNotHeld is a bug in the caller.
var errNotHeld = errors.New("wal: flush.lock is not held: the Held was unlocked, or belongs to another log")

// LockFlush takes flush.lock: only its holder puts files in place, writes the
// index and releases the log.
func (l *FileLog) LockFlush(ctx context.Context) (*Held, error) {
	if l.o.ReadOnly {
		return nil, errs.ErrReadOnly
	}
	if err := l.lock(ctx, roleFlush, vfs.ModeExclusive); err != nil {
		return nil, err
	}
	return l.heldNow()
}

// LockFlushUnless is LockFlush for a caller that needs it no more when done holds, which is asked again and
// again while the lock is another's, but not with Options.Inline: then it returns nil without an error.
func (l *FileLog) LockFlushUnless(ctx context.Context, done func() bool) (*Held, error) {
	if l.o.ReadOnly {
		return nil, errs.ErrReadOnly
	}
	held, err := l.lockUnless(ctx, roleFlush, vfs.ModeExclusive, done)
	switch {
	case err != nil:
		return nil, err
	case !held:
		return nil, l.lost() // done looked at a page that may be another log's by now
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

// heldNow is the proof, just after flush.lock was taken, or lets go of it where the log is no
// longer ours.
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

// proves says that h proves that flush.lock of l is held.
func (h *Held) proves(l *FileLog) error {
	if h == nil || h.l != l || h.unlocked.Load() {
		return errNotHeld
	}
	if h.rescue {
		return nil
	}
	return l.Folder().InPlace()
}
