package wal

import (
	"context"
	"errors"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
)

// Exclusive makes all other writers of the log wait, in all processes. It is for a caller whose preconditions fail
// again and again, because other writers never pause and its own work takes longer than theirs.
//
// An Exclusive holds append.lock through its own handle. So the other writers of this process wait for the lock in the
// same way as writers of other processes: at most LockWait. The holder does not use the queue, because the leader of
// the queue may be waiting for the lock. The holder must not wait for another goroutine that appends.
type Exclusive struct {
	l    *FileLog
	lock vfs.Lock
}

type exclusiveKey struct{}

// Exclusive takes append.lock and returns it as an Exclusive. It waits at most LockWait for the lock.
func (l *FileLog) Exclusive(ctx context.Context) (*Exclusive, error) {
	x, err := l.lockExclusive(ctx)
	for err == nil && l.lacksFieldsNow() { // the holder of the lock could not raise the feature
		if err = errors.Join(x.Release(), l.raiseFields(ctx)); err == nil {
			x, err = l.lockExclusive(ctx)
		}
	}
	return x, err
}

func (l *FileLog) lockExclusive(ctx context.Context) (*Exclusive, error) {
	if l.q.isClosed() {
		return nil, errs.ErrClosed
	}
	name := l.o.wal(roleNames[roleAppend])
	lock, err := l.openLock(name)
	if err != nil {
		return nil, err
	}
	wait, cancel := context.WithTimeout(ctx, l.o.LockWait)
	defer cancel()
	if err := lock.Lock(wait, vfs.ModeExclusive); err != nil {
		if wait.Err() != nil {
			err = &errs.LockError{Path: name, Holder: l.holder(roleAppend), Err: context.Cause(ctx)}
		} else {
			err = l.lockError(name, err)
		}
		return nil, errors.Join(err, lock.Close())
	}
	x := &Exclusive{l, lock}
	err = l.tookOurs()
	if err == nil {
		l.took(roleAppend)
		err = l.syncTo(ctx, l.shared.Tail()) // from here on the caller sees everything that was written
	}
	if err == nil {
		err = l.CatchUp(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, x.Release())
	}
	return x, nil
}

// In returns a context that marks the caller as the holder of append.lock. The holder must call Append with this
// context.
func (x *Exclusive) In(ctx context.Context) context.Context {
	return context.WithValue(ctx, exclusiveKey{}, x)
}

// Release releases append.lock, so that other writers can continue.
func (x *Exclusive) Release() error {
	if x.l.Folder().Replaced() == nil {
		x.l.shared.ClearHolder(roleAppend)
	}
	err := x.lock.Close()
	x.l.rouse(roleAppend)
	return err
}

// exclusive reports whether ctx was returned by In for an Exclusive of this log.
func (l *FileLog) exclusive(ctx context.Context) bool {
	x, ok := ctx.Value(exclusiveKey{}).(*Exclusive)
	return ok && x.l == l
}

// appendAlone is Append for the holder of an Exclusive. It does not use the queue.
func (l *FileLog) appendAlone(ctx context.Context, r *request) (LSN, error) {
	g, err := l.writeLocked(ctx, []*request{r})
	if err != nil {
		return 0, err
	}
	if err = l.syncTo(ctx, g.need); err == nil {
		err = l.keeps(g.need)
	}
	if err != nil {
		l.unsettled(r, err)
	} else if err := l.CatchUp(ctx); err != nil {
		l.o.Logger.Error("the entries of a commit could not be applied", "err", err)
	}
	return r.answer()
}
