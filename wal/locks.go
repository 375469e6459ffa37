package wal

import (
	"context"
	"errors"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal/page"
)

// The lock files of the log, in the order in which they are taken.
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

// slowWait is the duration from which a wait for a lock is logged.
const slowWait = 50 * time.Millisecond

// lock takes a lock. It waits at most LockWait. If it does not get the lock, the error is a *errs.LockError that names
// the holder. If ctx has ended, this error wraps the error of ctx.
func (l *FileLog) lock(ctx context.Context, role int, mode vfs.Mode) error {
	_, err := l.lockUnless(ctx, role, mode, nil)
	return err
}

// lockUnless is like lock, but gives up as soon as done returns true: the holder of the lock may have done the
// caller's work, so that the caller no longer needs the lock. held is false, without an error, if done has returned
// true.
func (l *FileLog) lockUnless(ctx context.Context, role int, mode vfs.Mode, done func() bool) (held bool, err error) {
	if err := l.Folder().Replaced(); err != nil {
		return false, err // the lock files may belong to another process by now
	}
	if role != roleAppend && role != roleSync { // else the lock file would be created again
		if err := l.Folder().InPlace(); err != nil {
			return false, err
		}
	}
	held, err = l.locks[role].TryLock(mode)
	if err == nil && !held {
		held, err = l.lockSlow(ctx, role, mode, done)
	}
	if err != nil {
		var le *errs.LockError
		if errors.As(err, &le) {
			return false, err
		}
		return false, l.lockError(l.o.wal(roleNames[role]), err)
	}
	if held && l.shared.Mapped() && !l.o.ReadOnly && l.Folder().Replaced() == nil {
		l.took(role)
	}
	return held, nil
}

// took records in the shared page that this process holds a lock. If the page already names a holder of flush.lock,
// that holder has died: took then records that tmp/ may contain files of the dead process.
func (l *FileLog) took(role int) {
	if role == roleFlush {
		if _, _, named := l.shared.Holder(role); named {
			l.shared.SetAbandoned(true)
		}
	}
	l.shared.SetHolder(role, l.host.PID, l.o.Clock())
}

func (l *FileLog) lockSlow(ctx context.Context, role int, mode vfs.Mode, done func() bool) (held bool, err error) {
	began := l.o.Clock()
	wait, cancel := context.WithTimeout(ctx, l.o.LockWait)
	defer cancel()
	held, err = l.waitLock(wait, role, mode, done)
	took := l.o.Clock().Sub(began)
	if l.o.Waited != nil {
		l.o.Waited(took)
	}
	if took >= slowWait {
		l.o.Logger.Debug("waited for a lock", "lock", roleNames[role], "took", took, "holder", l.holder(role).String())
		l.o.Event(Event{Kind: EventLockWait, Path: "wal/" + roleNames[role], Took: took, Note: l.holder(role).String()})
	}
	if err != nil && wait.Err() != nil {
		return false, &errs.LockError{Path: l.o.wal(roleNames[role]), Holder: l.holder(role), Err: context.Cause(ctx)}
	}
	return held, err
}

// A process that waits for one of the two locks that every commit takes first waits on the shared page: a wait
// there costs one thread switch, a wait in flock costs two. This is for short waits: at most lookTimes waits of
// lookAgain each, because no process wakes the waiters if the holder is killed, or if its version does not wake
// them.
const (
	lookTimes = 3
	lookAgain = 2 * time.Millisecond
)

// askAgain is the time for which a process waits for a lock before it calls done again. For flush.lock, a process
// does not wait in the first tryTimes rounds, but only tries to take the lock, every tryAgain: a wait that ends
// without the lock leaves a thread behind until the holder releases the lock.
const (
	askAgain = 50 * time.Millisecond
	tryAgain = 5 * time.Millisecond
	tryTimes = 100
)

// brief returns the number that a lock has on the shared page. ok is false if processes do not wait for this lock on
// the shared page.
func (l *FileLog) brief(role int) (lock int, ok bool) {
	if role != roleAppend && role != roleSync || l.o.Inline || l.o.ReadOnly {
		return 0, false
	}
	return role - roleAppend + page.AppendLock, l.shared.Sleeps()
}

// waitLock waits for a lock until it gets the lock, ctx ends, or done returns true. done may be nil.
func (l *FileLog) waitLock(ctx context.Context, role int, mode vfs.Mode, done func() bool) (held bool, err error) {
	if lock, ok := l.brief(role); ok {
		for range lookTimes {
			was := l.shared.Releases(lock)
			if done != nil && done() {
				return false, nil
			}
			// After Releases was read, so that a release between TryLock and AwaitRelease is not missed.
			if held, err := l.locks[role].TryLock(mode); held || err != nil {
				return held, err
			}
			if err := ctx.Err(); err != nil {
				return false, err
			}
			l.shared.AwaitRelease(lock, was, lookAgain)
		}
	}
	if done != nil && !l.o.Inline { // with Inline the holder does not run while this goroutine polls
		return l.lockAsking(ctx, role, mode, done)
	}
	err = l.locks[role].Lock(ctx, mode)
	return err == nil, err
}

// lockAsking waits for a lock until it gets the lock, ctx ends, or done returns true. It calls done before each
// attempt to take the lock. After an attempt that fails with an error, it calls done once more: if done returns true,
// held is false and there is no error.
func (l *FileLog) lockAsking(ctx context.Context, role int, mode vfs.Mode, done func() bool) (held bool, err error) {
	for n := 0; ; n++ {
		if rerr := l.Folder().Replaced(); rerr != nil {
			return false, rerr
		}
		if done() {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if role == roleFlush && n < tryTimes {
			if err = l.o.Sleep(ctx, tryAgain); err == nil {
				held, err = l.locks[role].TryLock(mode)
			}
		} else {
			held, err = l.lockFor(ctx, role, mode, askAgain)
		}
		if held {
			return true, nil
		}
	}
}

// lockFor waits for a lock, but no longer than timeout. If it does not get the lock in this time, it returns false
// and no error.
func (l *FileLog) lockFor(ctx context.Context, role int, mode vfs.Mode, timeout time.Duration) (held bool, err error) {
	part, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = l.locks[role].Lock(part, mode)
	if err != nil && errors.Is(err, part.Err()) && ctx.Err() == nil {
		return false, nil
	}
	return err == nil, err
}

func (l *FileLog) unlock(role int) {
	if l.shared.Mapped() && !l.o.ReadOnly && l.Folder().Replaced() == nil { // else the page may belong to a later log
		l.shared.ClearHolder(role)
	}
	if err := l.locks[role].Unlock(); err != nil {
		l.o.Logger.Error("unlocking", "lock", roleNames[role], "err", err)
	}
	l.rouse(role)
}

// rouse wakes the processes that wait for a lock on the shared page. A process that is not woken looks again after
// lookAgain.
func (l *FileLog) rouse(role int) {
	if lock, ok := l.brief(role); ok && l.Folder().Replaced() == nil { // else the page may belong to a later log
		l.shared.Released(lock)
	}
}

// holder returns the process that has recorded in the shared page that it holds a lock. If no process has recorded
// this, holder asks the system. A process may be stopped for a long time between taking a lock and recording it.
func (l *FileLog) holder(role int) errs.Holder {
	pid, since, named := 0, time.Time{}, false
	if l.shared.Mapped() {
		pid, since, named = l.shared.Holder(role)
	}
	if !named {
		if pid, since = vfs.LockedBy(l.o.wal(roleNames[role])), (time.Time{}); pid == 0 {
			return errs.Holder{}
		}
	}
	if named && l.elsewhere(pid) {
		h := l.process(pid)
		h.Since = since
		return h
	}
	return errs.Holder{PID: pid, Command: vfs.Process(pid).Command, Host: l.host.Name, PIDNamespace: l.host.PIDNamespace,
		Since: since}
}

// stillOurs is called each time a lock was taken. It returns an error if the shared page has another generation than
// the one that this process joined. Then another process has recovered the log while this process had it open, and
// everything that this process knows of the log may be wrong. stillOurs also returns an error if the store has a
// feature that this process does not know.
func (l *FileLog) stillOurs() error {
	if err := l.lost(); err != nil {
		return err
	}
	return l.still()
}

// lost is like stillOurs, but does not check features, because entries that are already written are durable whatever
// the features are. Every commit calls lost several times. To compare the generation is sufficient: a page with another
// generation belongs to another log or to no log.
func (l *FileLog) lost() error {
	if l.shared.Generation() == l.generation.Load() && !l.shared.Cut() {
		return nil
	}
	if l.shared.Cut() {
		l.lose(pageCut)
		return l.Folder().Replaced()
	}
	return errors.Join(errs.ErrReplaced, errs.ErrClosed, errLost)
}

var errLost = errors.New("another process has recovered the log while this process had it open; perhaps the file " +
	"wal/attach.lock was replaced: open the store again")
