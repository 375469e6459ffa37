package wal

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/page"
	"github.com/varve-db/varve/wal/past"
)

// While a purge is running, no process may release what the purge must overwrite: the flusher of any process
// may displace the file of a deleted document, and any process may release files of the log. So the purge is
// announced on the shared page before it deletes: from then on displaced files are kept, and files of the log
// are overwritten before they are removed. One purge runs at a time. A process of an older version ignores the
// announcement.

// purgeLook is the interval at which a process that waits for another purge checks again.
const purgeLook = 20 * time.Millisecond

// Running reports whether a purge is running, or was killed and no process has noticed yet.
func (g Purges) Running() bool {
	return g.l.shared.Mapped() && g.l.shared.Purger() != 0
}

// Begin announces a purge, and waits for other purges. Purges take turns, and each one reads everything that is kept
// of the log. So Begin returns an error only after the same process has been announced for LockWait. The purge of a
// process that was killed is treated as failed.
func (g Purges) Begin(ctx context.Context) error {
	own := page.NamePurger(g.l.host.PID, g.l.host.Birth)
	var other uint64
	began := g.l.o.Clock()
	for !g.l.shared.SwapPurger(0, own) {
		v := g.l.shared.Purger()
		if v == 0 {
			continue
		}
		if g.Drop() {
			continue
		}
		if v != other {
			other, began = v, g.l.o.Clock()
		}
		if g.l.o.Clock().Sub(began) >= g.l.o.LockWait {
			pid := int(other >> 32)
			return &errs.LockError{Path: g.l.o.walDir(), Holder: g.l.process(pid), Err: errPurging}
		}
		if err := g.l.o.Sleep(ctx, purgeLook); err != nil {
			return err
		}
	}
	return nil
}

// End withdraws the announcement of this process.
func (g Purges) End() {
	g.l.shared.SwapPurger(page.NamePurger(g.l.host.PID, g.l.host.Birth), 0)
}

// Drop withdraws the announcement of a process that was killed during its purge, and reports whether it did. It
// records the failure first, so that a flush always finds either the announcement or the failure.
func (g Purges) Drop() bool {
	v := g.l.shared.Purger()
	if v == 0 || g.l.lifeOf(v) != vfs.Dead {
		return false
	}
	g.Fail()
	return g.l.shared.SwapPurger(v, 0)
}

// Living returns the number by which the shared page names the process that purges (see page.NamePurger), if that
// process is known to be alive; otherwise 0.
func (g Purges) Living() uint64 {
	if !g.Running() {
		return 0
	}
	if v := g.l.shared.Purger(); g.l.lifeOf(v) == vfs.Alive {
		return v
	}
	return 0
}

// lifeOf reports whether the process that an announcement names is alive; it returns Dead if the process is not
// attached.
func (l *FileLog) lifeOf(purge uint64) vfs.Life {
	for _, a := range l.Processes().All() {
		if purge == page.NamePurger(a.PID, l.shared.Birth(a.slot)) {
			return a.Life
		}
	}
	return vfs.Dead
}

// Fail records that a purge has failed, or was killed, and left data to overwrite. From then on all processes
// overwrite the files of the log that they release, until a purge is completed. They also overwrite the document files
// that they displace, until everything that the log has now is in files.
func (g Purges) Fail() {
	g.l.shared.RaiseDisplacedBelow(g.l.shared.Tail())
	g.l.shared.SetPurgeFailed(true)
}

// Failed reports whether a purge has failed or was killed, and no process has completed one since.
func (g Purges) Failed() bool {
	return g.l.shared.Mapped() && g.l.shared.PurgeFailed()
}

// Displaced reports whether displaced files must be overwritten because a purge has failed.
func (g Purges) Displaced() bool {
	return g.l.shared.Mapped() && g.l.shared.DisplacedBelow() != 0
}

// WipedDisplaced records that all entries below a position are in files, and that the files that these entries have
// displaced are overwritten.
func (g Purges) WipedDisplaced(below LSN) {
	if v := g.l.shared.DisplacedBelow(); v <= below {
		g.l.shared.SwapDisplacedBelow(v)
	}
}

// Done records that a purge was completed: it has also overwritten what earlier purges left. A copy on another machine
// that was made before contains the purged data, so Done records that the copy must begin again; if that cannot be
// recorded, the purge has failed.
func (g Purges) Done() error {
	if err := g.l.broken(past.Purged, g.l.Durable()); err != nil {
		return err
	}
	g.l.shared.SetPurgeFailed(false)
	g.l.shared.ClearDisplacedBelow()
	return nil
}

// Overwrites reports whether released files must be overwritten: a purge is running, or one has failed and none
// was completed since.
func (g Purges) Overwrites() bool { return g.Running() || g.Failed() }

// zero overwrites a segment from an offset on, and syncs it. It uses a separate file descriptor: see the beginning of
// prepare.go.
func (l *FileLog) zero(number uint64, from int64) error {
	f, err := l.o.FS.OpenFile(l.o.wal(segment.Name(number)), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(vfs.Zero(f, from), f.Close())
}

// letGo removes a file of the log. If a purge requires it, the file is overwritten first.
func (l *FileLog) letGo(path string) error {
	if l.Purges().Overwrites() {
		return vfs.Unwiped(&l.unwiped, vfs.Wipe(l.o.FS, path))
	}
	return l.o.FS.Remove(path)
}
