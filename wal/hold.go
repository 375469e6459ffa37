package wal

import (
	"context"
	"errors"
	"fmt"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
)

// Hold prevents segments of the log from being recycled while a backup copies them. It becomes invalid when the log has
// grown by more than Options.HoldBytes since the hold began. Then segments are recycled in spite of the hold; otherwise
// a hanging backup would fill the disk. The holder must call Held regularly, and stop when Held returns an error. Held
// and the code that recycles segments use the same check, overstayed.
type Hold struct {
	l    *FileLog
	lock vfs.Lock
}

// Hold takes hold.lock in shared mode. It opens its own handle of the lock file for this, because this process uses
// the handle of the log when it releases segments. If the FileLog is read-only, Hold takes no lock, because no segment
// is released on a read-only medium. If other processes write nevertheless, and release a segment during the copy, the
// copy fails.
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

// lockHold takes hold.lock in shared mode; it waits while another process releases segments. If there is no other
// holder, it first resets the position from which overstayed counts, because an earlier holder may have been killed.
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

// Held returns an error if the log has grown by more bytes than the hold allows, or if the log was replaced.
func (h *Hold) Held() error {
	if h.lock == nil {
		return nil
	}
	if piled, over := h.l.overstayed(); over {
		return fmt.Errorf("%w: the log has grown by %d bytes since the copy began; the limit is %d bytes: copy to a "+
			"faster disk, or at a time when less is written",
			errs.ErrLimit, piled, h.l.holdLimit())
	}
	return h.l.stillOurs()
}

// Release ends the hold. Segments of the log may be recycled again.
func (h *Hold) Release() error {
	if h.lock == nil {
		return nil
	}
	return h.lock.Close()
}

// holdLimit returns the number of bytes by which the log may grow before a hold becomes invalid. It is at least two
// segments, because with less a hold would not keep any segment.
func (l *FileLog) holdLimit() uint64 { return max(uint64(l.o.HoldBytes), 2*l.geo.Size) }

// overstayed returns the number of bytes of log written since the oldest hold began, and reports whether this number
// exceeds holdLimit. Once the number exceeds holdLimit, over stays true until no process holds hold.lock.
func (l *FileLog) overstayed() (piled uint64, over bool) {
	from, tail := l.shared.CopyStart(), l.shared.Tail()
	if from == 0 || tail <= from {
		return 0, false
	}
	return tail - from, tail-from > l.holdLimit()
}

// copied reports whether a backup is copying the log and its hold is valid: then no segment may be released. oldest is
// the number of the oldest segment. If locked is true, copied has taken hold.lock, and the caller must release it.
func (l *FileLog) copied(_ *Held, oldest uint64) (copied, locked bool, err error) {
	ok, err := l.locks[roleHold].TryLock(vfs.ModeExclusive)
	if err != nil || ok {
		return false, ok, err
	}
	piled, over := l.overstayed()
	if !over {
		return true, false, nil
	}
	l.o.Logger.Warn("a backup has taken too long; segments of the log that it still needs are released", "bytes", piled,
		"limit",
		l.holdLimit())
	l.o.Event(Event{Kind: EventHoldBroken, Path: "wal/" + segment.Name(oldest), Bytes: int64(piled)})
	return false, false, nil
}
