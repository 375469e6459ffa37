package wal

import (
	"context"
	"errors"
	"io/fs"

	"github.com/varve-db/varve/internal/vfs"
)

// followName is the name of the lock that a process holds while it sends the log to a copy in another place. The
// process takes this lock before flush.lock, which it needs for a snapshot. A process that already holds another lock
// never waits for this lock.
const followName = "follow.lock"

// Follow takes the lock that allows only one process to send the log to a copy in another place. It blocks until it has
// the lock or ctx ends. The caller must close the lock.
func (ps Processes) Follow(ctx context.Context) (vfs.Lock, error) {
	name := ps.l.o.wal(followName)
	lock, err := ps.l.openLock(name)
	if err != nil {
		return nil, err
	}
	if err := lock.Lock(ctx, vfs.ModeExclusive); err != nil {
		return nil, errors.Join(ps.l.lockError(name, err), lock.Close())
	}
	if err := ps.l.tookOurs(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// Followed reports whether a process is sending the log to a copy in another place.
func (ps Processes) Followed() (bool, error) {
	name := ps.l.o.wal(followName)
	if _, err := ps.l.o.FS.Stat(name); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	lock, err := ps.l.o.FS.OpenLock(name, ps.l.o.FileMode)
	if err != nil {
		return false, ps.l.ioError("opening", name, err)
	}
	free, err := lock.TryLock(vfs.ModeShared)
	return !free && err == nil, errors.Join(err, lock.Close())
}
