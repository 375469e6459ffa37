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

// While a purge is under way nobody may let go of what it is to overwrite: the file of
// what it deletes may be displaced by the flusher of any process, and the log's files are
// released by any. So it says so on the shared page before it deletes: from then on
// displaced files are kept, and files of the log are overwritten before they go. One purge
// at a time. A process of an older version does not look at it.

// purgeLook is how often one who waits for another's purge looks again.
const purgeLook = 20 * time.Millisecond

// Running reports that a purge is running, or was killed and no process has noticed yet.
func (g Purges) Running() bool {
	return g.l.shared.Mapped() && g.l.shared.Purger() != 0
}

// Begin announces a purge, and waits for other purges: they take turns, and each of them goes through
// all that is kept of the log, so it gives up when for LockWait the one that is announced is of the same
// process. The purge of a process that was killed counts as failed.
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

// End announces its end.
func (g Purges) End() {
	g.l.shared.SwapPurger(page.NamePurger(g.l.host.PID, g.l.host.Birth), 0)
}

// Drop withdraws the announcement of a process that was killed during its purge, which has failed. What
// says so comes first: at no time does a round find neither.
func (g Purges) Drop() bool {
	v := g.l.shared.Purger()
	if v == 0 || g.l.lifeOf(v) != vfs.Dead {
		return false
	}
	g.Fail()
	return g.l.shared.SwapPurger(v, 0)
}

// Living names the process that purges, if it is known to be alive; 0 where none does.
func (g Purges) Living() uint64 {
	if !g.Running() {
		return 0
	}
	if v := g.l.shared.Purger(); g.l.lifeOf(v) == vfs.Alive {
		return v
	}
	return 0
}

// lifeOf is that of the process which an announcement names: Dead also where it is not attached.
func (l *FileLog) lifeOf(purge uint64) vfs.Life {
	for _, a := range l.Processes().All() {
		if purge == page.NamePurger(a.PID, l.shared.Birth(a.slot)) {
			return a.Life
		}
	}
	return vfs.Dead
}

// Fail records that a purge has failed, or was killed, and left data to overwrite. All processes
// overwrite the files of the log that they release then, until a purge is completed; and what they displace
// of documents, until all that the log has now is in files.
func (g Purges) Fail() {
	g.l.shared.RaiseDisplacedBelow(g.l.shared.Tail())
	g.l.shared.SetPurgeFailed(true)
}

// Failed reports that a purge has failed or was killed, and none was completed since, by whatever process.
func (g Purges) Failed() bool {
	return g.l.shared.Mapped() && g.l.shared.PurgeFailed()
}

// Displaced reports that what is displaced is to be overwritten for a purge that has failed.
func (g Purges) Displaced() bool {
	return g.l.shared.Mapped() && g.l.shared.DisplacedBelow() != 0
}

// WipedDisplaced records that all entries below a position are in files, and what these displaced is
// overwritten.
func (g Purges) WipedDisplaced(below LSN) {
	if v := g.l.shared.DisplacedBelow(); v <= below {
		g.l.shared.SwapDisplacedBelow(v)
	}
}

// Done records that a purge was completed: what those before it left is overwritten too. A copy of the log
// that was made before contains what was purged, so it is told to begin again; where that cannot be recorded the
// purge has failed.
func (g Purges) Done() error {
	if err := g.l.broken(past.Purged, g.l.Durable()); err != nil {
		return err
	}
	g.l.shared.SetPurgeFailed(false)
	g.l.shared.ClearDisplacedBelow()
	return nil
}

// Overwrites reports that released files must be overwritten: a purge is running, or one has failed
// and none was completed since.
func (g Purges) Overwrites() bool { return g.Running() || g.Failed() }

// zero overwrites a segment from an offset on, durably. It uses a file descriptor of its
// own: see the head of prepare.go.
func (l *FileLog) zero(number uint64, from int64) error {
	f, err := l.o.FS.OpenFile(l.o.wal(segment.Name(number)), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(vfs.Zero(f, from), f.Close())
}

// letGo removes a file of the log. For a purge it is overwritten before.
func (l *FileLog) letGo(path string) error {
	if l.Purges().Overwrites() {
		return vfs.Unwiped(&l.unwiped, vfs.Wipe(l.o.FS, path))
	}
	return l.o.FS.Remove(path)
}
