package wal

import (
	"context"
	"errors"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
)

// Lead is that one process, of all that have the store open, does what one should do
// for all: watch the files. It has watch.lock, which stands outside the order of the
// others: nobody waits for it with one of them, nor for one of them without end with it.
type Lead struct {
	l    *FileLog
	lock vfs.Lock
}

// Lead waits until no other process leads, or until ctx ends. A leader that dies is followed by the
// next.
func (l *FileLog) Lead(ctx context.Context) (*Lead, error) {
	name := l.o.wal("watch.lock")
	lock, err := l.openLock(name)
	if err != nil {
		return nil, err
	}
	if err := lock.Lock(ctx, vfs.ModeExclusive); err != nil {
		return nil, errors.Join(l.ioError("locking", name, err), lock.Close())
	}
	lead := &Lead{l: l, lock: lock}
	if err := l.stillOurs(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	l.shared.Store(wordLeader, uint64(l.host.PID))
	return lead, nil
}

// Release lets another process lead.
func (d *Lead) Release() error {
	d.l.shared.CompareAndSwap(wordLeader, uint64(d.l.host.PID), 0)
	return d.lock.Close()
}

// Leader is the id of the process that leads, 0 when none does as far as can be seen
// from here: the lock is the truth.
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
	lock, err := l.o.FS.OpenLock(name, l.o.FileMode)
	if err != nil {
		return nil, l.ioError("opening", name, err)
	}
	return lock, nil
}
