package wal

import (
	"context"
	"errors"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
)

// Lead makes one process, of all that have the store open, do a task for all of them: watch the
// files. The leader has watch.lock, which is outside the order of the other locks: no process waits
// for it while holding one of them, or waits without limit for one of them while holding it.
type Lead struct {
	l    *FileLog
	lock vfs.Lock
}

// Lead waits until no other process leads, or until ctx ends. When a leader dies another process
// takes over.
func (l *FileLog) Lead(ctx context.Context) (*Lead, error) {
	name := l.o.wal("watch.lock")
	lock, err := l.openLock(name)
	if err != nil {
		return nil, err
	}
	if err := lock.Lock(ctx, vfs.ModeExclusive); err != nil {
		return nil, errors.Join(l.lockError(name, err), lock.Close())
	}
	lead := &Lead{l: l, lock: lock}
	if err := l.tookOurs(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	l.shared.Store(wordLeader, uint64(l.host.PID))
	return lead, nil
}

// Release lets another process lead.
func (d *Lead) Release() error {
	if d.l.Replaced() == nil { // else the page may be that of a later log, which even a vain exchange marks as changed
		d.l.shared.CompareAndSwap(wordLeader, uint64(d.l.host.PID), 0)
	}
	return d.lock.Close()
}

// Leader is the id of the leading process, 0 if none is known; only the lock is authoritative.
func (l *FileLog) Leader() int {
	if l.shared.Shared == nil {
		return 0
	}
	pid := int(l.shared.Load(wordLeader))
	if pid == 0 || pid == l.host.PID {
		return pid
	}
	for _, a := range l.Attached() {
		if a.PID == pid {
			return pid
		}
	}
	return 0
}

// openLock opens a lock file by a handle of its own.
func (l *FileLog) openLock(name string) (vfs.Lock, error) {
	if l.o.ReadOnly {
		return nil, errs.ErrReadOnly
	}
	if err := l.InPlace(); err != nil { // else the lock file would be another log's
		return nil, err
	}
	lock, err := l.o.FS.OpenLock(name, l.o.FileMode)
	if err != nil {
		return nil, l.ioError("opening", name, err)
	}
	return lock, nil
}

// lockError is ioError for a lock that could not be taken, perhaps because its folder is gone.
func (l *FileLog) lockError(name string, err error) error {
	if perr := l.InPlace(); perr != nil {
		return perr
	}
	return l.ioError("locking", name, err)
}

// tookOurs is stillOurs for the holder of a lock of openLock: the log may have been replaced while the holder waited.
func (l *FileLog) tookOurs() error {
	if err := l.InPlace(); err != nil {
		return err
	}
	return l.stillOurs()
}
