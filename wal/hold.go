package wal

import (
	"context"
	"errors"
	"fmt"

	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
)

// Hold keeps the log from its oldest segment on while somebody copies from it.
// It is a promise within Options.HoldBytes: when more than that has piled up, who
// releases the log goes on without asking, for a backup that hangs must not have
// the disk fill up until every put fails. Whoever holds asks Held, and gives up.
type Hold struct {
	l     *FileLog
	lock  vfs.Lock
	from  LSN
	limit uint64
}

// Hold takes hold.lock, shared, by a handle of its own: the log's own handle is
// the one with which this process releases.
func (l *FileLog) Hold(ctx context.Context) (*Hold, error) {
	if l.o.ReadOnly {
		return nil, errs.ErrReadOnly
	}
	name := l.o.wal(roleNames[roleHold])
	lock, err := l.o.FS.OpenLock(name, l.o.FileMode)
	if err != nil {
		return nil, l.ioError("opening", name, err)
	}
	wait, cancel := context.WithTimeout(ctx, l.o.LockWait)
	defer cancel()
	if err := lock.Lock(wait, vfs.ModeShared); err != nil {
		_ = lock.Close()
		if wait.Err() != nil {
			return nil, &errs.LockError{Path: name, Holder: l.holder(roleHold), Err: context.Cause(ctx)}
		}
		return nil, l.ioError("locking", name, err)
	}
	h := &Hold{l: l, lock: lock, limit: uint64(l.o.HoldBytes)}
	oldest, err := l.oldest()
	if err == nil {
		err = l.stillOurs()
	}
	if err != nil {
		return nil, errors.Join(err, h.Release())
	}
	h.from = l.geo.Start(oldest)
	return h, nil
}

// Held is an error once the log has grown past the budget of a hold.
func (h *Hold) Held() error {
	if tail := h.l.shared.tail(); tail > h.from && tail-h.from > h.limit {
		return fmt.Errorf("%w: %d bytes of log have piled up since the copy began, %d may: copy to a faster disk, or when less is written",
			errs.ErrLimit, tail-h.from, h.limit)
	}
	return h.l.stillOurs()
}

// Release lets the log be recycled again.
func (h *Hold) Release() error { return h.lock.Close() }

// held says whether somebody copies from the log whom a release has to wait for.
// flush.lock is held; when held is false and the error nil, so is hold.lock.
func (l *FileLog) held(oldest uint64) (held, locked bool, err error) {
	ok, err := l.locks[roleHold].TryLock(vfs.ModeExclusive)
	if err != nil || ok {
		return false, ok, err
	}
	kept := l.shared.tail() - l.geo.Start(oldest)
	if kept <= uint64(l.o.HoldBytes) {
		return true, false, nil
	}
	l.o.Logger.Warn("a backup holds the log for too long; it is released all the same", "bytes", kept, "limit", l.o.HoldBytes)
	l.o.Event(Event{Kind: EventHoldBroken, Path: "wal/" + segment.Name(oldest), Bytes: int64(kept)})
	return false, false, nil
}
