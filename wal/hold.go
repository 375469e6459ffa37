package wal

import (
	"context"
	"errors"
	"fmt"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
)

// Hold keeps segments of the log from being recycled while a backup copies them. It is valid until the log has
// grown by more than Options.HoldBytes since the hold began; what was written before is not counted. From then
// on the log is released in spite of the hold, because a hanging backup must not fill the disk until every put
// fails. The holder calls Held regularly, and stops when Held returns an error. Held and the release use the
// same check, overstayed.
type Hold struct {
	l    *FileLog
	lock vfs.Lock
}

// Hold takes hold.lock in shared mode, through a handle of its own, because this process uses the log's handle
// when it releases segments. On a read-only FileLog, Hold takes no lock: on a read-only medium no segment is
// released. If other processes write nevertheless, a segment that is released during the copy makes the copy
// fail.
func (a Archive) Hold(ctx context.Context) (*Hold, error) {
	if a.l.o.ReadOnly {
		return &Hold{l: a.l}, nil
	}
	name := a.l.o.wal(roleNames[roleHold])
	lock, err := a.l.openLock(name)
	if err != nil {
		return nil, err
	}
	if err := a.l.lockHold(ctx, lock, name); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	a.l.shared.BeginCopy()
	h := &Hold{l: a.l, lock: lock}
	if err := a.l.tookOurs(); err != nil {
		return nil, errors.Join(err, h.Release())
	}
	return h, nil
}

// lockHold takes hold.lock, and waits for a running release to end. If there is no other holder, the count of
// bytes written since the hold began starts from zero, because an earlier holder may have been killed without
// resetting it.
func (l *FileLog) lockHold(ctx context.Context, lock vfs.Lock, name string) error {
	ok, err := lock.TryLock(vfs.ModeExclusive)
	if err == nil && ok {
		l.shared.ClearCopyStart()
		err = lock.Unlock() // locks are never converted, see openShared
	}
	if err == nil {
		ok, err = lock.TryLock(vfs.ModeShared)
	}
	if err == nil && !ok {
		wait, cancel := context.WithTimeout(ctx, l.o.LockWait)
		defer cancel()
		if err = lock.Lock(wait, vfs.ModeShared); err != nil && wait.Err() != nil {
			return &errs.LockError{Path: name, Holder: l.holder(roleHold), Err: context.Cause(ctx)}
		}
	}
	if err != nil {
		return l.lockError(name, err)
	}
	return nil
}

// Held returns an error once the log has grown by more bytes than the hold allows.
func (h *Hold) Held() error {
	if h.lock == nil {
		return nil
	}
	if piled, over := h.l.overstayed(); over {
		return fmt.Errorf("%w: the log has grown by %d bytes since the copy began, the limit is %d: copy to a faster disk, "+
			"or when less is written",
			errs.ErrLimit, piled, h.l.holdLimit())
	}
	return h.l.stillOurs()
}

// Release ends the hold: the log may be recycled again.
func (h *Hold) Release() error {
	if h.lock == nil {
		return nil
	}
	return h.lock.Close()
}

// holdLimit returns by how many bytes the log may grow before a hold ends: at least two segments, because with
// less a hold would keep nothing.
func (l *FileLog) holdLimit() uint64 { return max(uint64(l.o.HoldBytes), 2*l.geo.Size) }

// overstayed returns the number of bytes of log written since the oldest hold began, and whether that exceeds
// holdLimit. Once exceeded, it stays exceeded until hold.lock is free.
func (l *FileLog) overstayed() (piled uint64, over bool) {
	from, tail := l.shared.CopyStart(), l.shared.Tail()
	if from == 0 || tail <= from {
		return 0, false
	}
	return tail - from, tail-from > l.holdLimit()
}

// copied reports whether a backup is copying the log and needs the segments from number oldest on. locked
// reports whether hold.lock was taken; the caller releases it.
func (l *FileLog) copied(_ *Held, oldest uint64) (copied, locked bool, err error) {
	ok, err := l.locks[roleHold].TryLock(vfs.ModeExclusive)
	if err != nil || ok {
		return false, ok, err
	}
	piled, over := l.overstayed()
	if !over {
		return true, false, nil
	}
	l.o.Logger.Warn("a backup holds the log for too long; the log is released nevertheless", "bytes", piled, "limit",
		l.holdLimit())
	l.o.Event(Event{Kind: EventHoldBroken, Path: "wal/" + segment.Name(oldest), Bytes: int64(piled)})
	return false, false, nil
}
