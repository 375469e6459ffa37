package wal

import (
	"context"
	"errors"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
)

// Exclusive keeps all other writers of the log waiting, in all processes. It is for a caller whose
// preconditions fail repeatedly, because other writers never pause and its own work takes longer than theirs.
// Without Exclusive such a caller may never succeed.
//
// Exclusive holds append.lock through a handle of its own, so that other writers of this process wait for the
// lock as writers of other processes do, at most LockWait. The holder bypasses the queue, whose leader may be
// waiting for the lock. The holder must not wait for another goroutine that appends.
type Exclusive struct {
	l    *FileLog
	lock vfs.Lock
}

type exclusiveKey struct{}

// Exclusive takes append.lock, waiting at most LockWait.
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

// In returns a context that marks its user as the holder of the lock. The holder must pass it to Append.
func (x *Exclusive) In(ctx context.Context) context.Context {
	return context.WithValue(ctx, exclusiveKey{}, x)
}

// Release lets other writers continue.
func (x *Exclusive) Release() error {
	if x.l.Folder().Replaced() == nil {
		x.l.shared.ClearHolder(roleAppend)
	}
	err := x.lock.Close()
	x.l.rouse(roleAppend)
	return err
}

// exclusive reports whether ctx belongs to a holder of this log's append.lock.
func (l *FileLog) exclusive(ctx context.Context) bool {
	x, ok := ctx.Value(exclusiveKey{}).(*Exclusive)
	return ok && x.l == l
}

// appendAlone does what Append does, for the holder of an Exclusive: it bypasses the queue.
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
		l.o.Logger.Error("catching up after a commit", "err", err)
	}
	return r.answer()
}
