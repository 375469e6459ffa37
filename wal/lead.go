package wal

import (
	"context"
	"errors"
	"sync"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
)

// Lead is held by the leader: the one process that watches the store's files for all processes that have the store
// open. The leader holds watch.lock, which has no place in the order of the other locks: no process waits for
// watch.lock while it holds another lock, and the holder of watch.lock waits for another lock only for a limited time.
type Lead struct {
	l    *FileLog
	lock vfs.Lock
	once sync.Once
	err  error // error of closing the lock
}

// Lead blocks until this process is the leader or ctx ends. If the leader dies, another process takes over.
func (ps Processes) Lead(ctx context.Context) (*Lead, error) {
	name := ps.l.o.wal("watch.lock")
	lock, err := ps.l.openLock(name)
	if err != nil {
		return nil, err
	}
	if err := lock.Lock(ctx, vfs.ModeExclusive); err != nil {
		return nil, errors.Join(ps.l.lockError(name, err), lock.Close())
	}
	lead := &Lead{l: ps.l, lock: lock}
	// before InPlace: settleLoss ends the registered Lead when the log is found to be replaced
	ps.l.place.lead.Store(lead)
	if err := ps.l.tookOurs(); err != nil {
		return nil, errors.Join(err, lead.end())
	}
	ps.SetPolling(NotPolling)
	ps.l.shared.SetLeader(ps.l.host.PID)
	return lead, nil
}

// Release gives up the lead, so that another process can be the leader.
func (d *Lead) Release() error {
	// if the log was replaced, the page may belong to a later log, and even a failed exchange would mark it as changed
	if d.l.Folder().Replaced() == nil {
		d.l.shared.ClearLeader(d.l.host.PID)
	}
	d.l.place.lead.CompareAndSwap(d, nil)
	return d.end()
}

// end closes watch.lock; further calls do nothing. Release calls end, and settleLoss calls end if the log is lost. If
// only the segments were removed, the next log in the folder uses the same lock file: without end, the processes of
// that log would wait for the lock as long as this store is open.
func (d *Lead) end() error {
	d.once.Do(func() { d.err = d.lock.Close() })
	return d.err
}

// Leads reports whether the leader is this handle of the log. Another handle of the same process is another leader.
func (ps Processes) Leads() bool { return ps.l.place.lead.Load() != nil }

// Leader returns the id of the leader's process, or 0 if it is not known. The id is only a hint: the holder of
// watch.lock is the leader.
func (ps Processes) Leader() int {
	if !ps.l.shared.Mapped() {
		return 0
	}
	pid := ps.l.shared.Leader()
	if pid == 0 || pid == ps.l.host.PID {
		return pid
	}
	for _, a := range ps.All() {
		if a.PID == pid {
			return pid
		}
	}
	return 0
}

// openLock opens a lock file through a new handle, separate from those in l.locks.
func (l *FileLog) openLock(name string) (vfs.Lock, error) {
	if l.o.ReadOnly {
		return nil, errs.ErrReadOnly
	}
	if err := l.Folder().InPlace(); err != nil { // else the lock file may belong to another log
		return nil, err
	}
	lock, err := l.o.FS.OpenLock(name, l.o.FileMode)
	if err != nil {
		return nil, l.ioError("opening", name, err)
	}
	return lock, nil
}

// lockError returns the error for a lock that could not be taken. If the log was removed or replaced, lockError
// returns the error of Folder.InPlace; otherwise it returns err with the path of the lock.
func (l *FileLog) lockError(name string, err error) error {
	if perr := l.Folder().InPlace(); perr != nil {
		return perr
	}
	return l.ioError("locking", name, err)
}

// tookOurs is called after a lock from openLock was taken. It returns an error if the log was replaced while the
// caller waited for the lock. Otherwise it returns the result of stillOurs.
func (l *FileLog) tookOurs() error {
	if err := l.Folder().InPlace(); err != nil {
		return err
	}
	return l.stillOurs()
}

// PollCause is the reason why the leader scans all files at intervals and does not get notifications of changes.
type PollCause uint8

// The reasons why the leading process scans files at intervals.
const (
	NotPolling  PollCause = iota
	NoWatches             // the user has no inotify watches left
	NoInstances           // the user has no inotify instances left, or the process no free file descriptors
	NoNotices             // the system or the file system has no notifications
)

// String returns a message for a person: the cause, and the remedy if the cause is a limit of the system. For
// NotPolling it returns "".
func (c PollCause) String() string {
	switch c {
	case NotPolling:
		return ""
	case NoWatches:
		return "this user has no inotify watches left: raise the system limit fs.inotify.max_user_watches (sysctl)"
	case NoInstances:
		return "this user has no inotify instances left, or this process cannot open more files: raise the system " +
			"limit fs.inotify.max_user_instances (sysctl) or ulimit -n"
	}
	return "the system or the file system does not report changes of files"
}

// SetPolling records, for all processes, the cause for which the leader scans files at intervals, or NotPolling if
// it does not scan them. Only the leader calls SetPolling.
func (ps Processes) SetPolling(cause PollCause) {
	if !ps.l.shared.Mapped() || ps.l.Folder().Replaced() != nil {
		return
	}
	leader := ps.l.host.PID
	if cause == NotPolling {
		leader = 0
	}
	ps.l.shared.SetPolls(leader, uint8(cause))
}

// Polling returns the reason why the leader scans files at intervals. It returns NotPolling if there is no leader, or
// if the system notifies the leader of changes.
func (ps Processes) Polling() PollCause {
	leader := ps.Leader()
	if leader == 0 {
		return NotPolling
	}
	if polls, why := ps.l.shared.Polls(); polls == leader {
		return PollCause(why)
	}
	return NotPolling
}
