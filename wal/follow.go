package wal

import (
	"context"
	"errors"
	"io/fs"

	"github.com/varve-db/varve/internal/vfs"
)

// followName is the name of the lock of the process that sends the log to a copy elsewhere. It is taken before
// flush.lock, which that process takes for a snapshot; no process waits for it while it holds another lock.
const followName = "follow.lock"

// Follow blocks until this process is the only one that sends the log to a copy elsewhere, or ctx ends. The caller
// closes the lock.
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

// Followed reports whether a process sends the log to a copy elsewhere.
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
