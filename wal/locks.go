package wal

import (
	"context"
	"errors"
	"time"

	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/vfs"
)

// The locks, in the order in which they are taken.
const (
	roleOpen = iota
	roleAttach
	roleFlush
	roleAppend
	roleSync
	roleHold
	roles
)

var roleNames = [roles]string{"open.lock", "attach.lock", "flush.lock", "append.lock", "sync.lock", "hold.lock"}

// slowWait is the wait for a lock from which on it is worth a line in the log.
const slowWait = 50 * time.Millisecond

// lock waits for a lock, at most LockWait. A wait that ends without it returns a
// *errs.LockError that names the holder, and ctx's error if ctx ended.
func (l *FileLog) lock(ctx context.Context, role int, mode vfs.Mode) error {
	ok, err := l.locks[role].TryLock(mode)
	if err == nil && !ok {
		err = l.lockSlow(ctx, role, mode)
	}
	if err != nil {
		var le *errs.LockError
		if errors.As(err, &le) {
			return err
		}
		return l.ioError("locking", l.o.wal(roleNames[role]), err)
	}
	if l.shared.Shared != nil && !l.o.ReadOnly {
		l.took(role)
	}
	return nil
}

// took writes down who has a lock. One who died with flush.lock has not taken
// his name off, and may have left files in tmp/ that nobody has looked at.
func (l *FileLog) took(role int) {
	if role == roleFlush && l.shared.Load(wordHolders+role) != 0 {
		l.shared.Store(wordAbandon, 1)
	}
	l.shared.holder(role, l.host.PID, l.o.Clock())
}

func (l *FileLog) lockSlow(ctx context.Context, role int, mode vfs.Mode) error {
	began := l.o.Clock()
	wait, cancel := context.WithTimeout(ctx, l.o.LockWait)
	defer cancel()
	err := l.locks[role].Lock(wait, mode)
	took := l.o.Clock().Sub(began)
	if took >= slowWait {
		l.o.Logger.Debug("waited for a lock", "lock", roleNames[role], "took", took, "holder", l.holder(role).String())
		l.o.Event(Event{Kind: EventLockWait, Path: "wal/" + roleNames[role], Took: took, Note: l.holder(role).String()})
	}
	if err != nil && wait.Err() != nil {
		return &errs.LockError{Path: l.o.wal(roleNames[role]), Holder: l.holder(role), Err: context.Cause(ctx)}
	}
	return err
}

func (l *FileLog) unlock(role int) {
	if l.shared.Shared != nil && !l.o.ReadOnly {
		l.shared.unhold(role)
	}
	if err := l.locks[role].Unlock(); err != nil {
		l.o.Logger.Error("unlocking", "lock", roleNames[role], "err", err)
	}
}

// holder is who last said that he took the lock; flock is the truth.
func (l *FileLog) holder(role int) errs.Holder {
	if l.shared.Shared == nil {
		return errs.Holder{}
	}
	v := l.shared.Load(wordHolders + role)
	if v == 0 {
		return errs.Holder{}
	}
	h := vfs.Process(int(v >> 32))
	return errs.Holder{PID: int(v >> 32), Command: h.Command, Host: l.host.Name, PIDNamespace: l.host.PIDNamespace,
		Since: time.Unix(int64(uint32(v)), 0)}
}

// stillOurs is asked after each acquire: is this page still of our boot and of
// the life of the log that we joined? Otherwise somebody recovered the log
// beside us, and nothing that we know of it can be trusted.
func (l *FileLog) stillOurs() error {
	if l.shared.valid(l.host) && l.shared.generation() == l.generation.Load() {
		return nil
	}
	return errors.Join(errs.ErrClosed, errLost)
}

var errLost = errors.New("another process has recovered this log while this one had it open (was wal/attach.lock replaced?): open the store again")
