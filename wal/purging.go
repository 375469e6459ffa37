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

// purgeLook is the interval at which a process checks whether another purge has ended.
const purgeLook = 20 * time.Millisecond

// Running reports whether a process is purging. It also returns true if the process was killed and no other process has
// noticed this yet.
func (g Purges) Running() bool {
	return g.l.shared.Mapped() && g.l.shared.Purger() != 0
}

// Begin announces in the shared page that this process purges. It first waits until no other process purges. Only one
// purge runs at a time, and each reads everything that is kept of the log. So Begin gives up only if the same other
// process has been announced for LockWait. If that process was killed, its purge counts as failed, and Begin does not
// wait for it.
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

// End withdraws the announcement that this process purges.
func (g Purges) End() {
	g.l.shared.SwapPurger(page.NamePurger(g.l.host.PID, g.l.host.Birth), 0)
}

// Drop withdraws the announcement of a process that was killed while it purged, and reports whether there was one.
// Before that, it records the purge as failed. So a flush always finds either the announcement or the record of the
// failure.
func (g Purges) Drop() bool {
	v := g.l.shared.Purger()
	if v == 0 || g.l.lifeOf(v) != vfs.Dead {
		return false
	}
	g.Fail()
	return g.l.shared.SwapPurger(v, 0)
}

// Living returns the number by which the shared page identifies the process that is purging. It returns 0 if no process
// is purging or if the process is not known to be alive.
func (g Purges) Living() uint64 {
	if !g.Running() {
		return 0
	}
	if v := g.l.shared.Purger(); g.l.lifeOf(v) == vfs.Alive {
		return v
	}
	return 0
}

// lifeOf reports whether the process that announced a purge is alive. If that process does not have the log open,
// lifeOf returns Dead.
func (l *FileLog) lifeOf(purge uint64) vfs.Life {
	for _, a := range l.Processes().All() {
		if purge == page.NamePurger(a.PID, l.shared.Birth(a.slot)) {
			return a.Life
		}
	}
	return vfs.Dead
}

// Fail records that a purge has failed, or was killed, and has left data that must be overwritten. From then on all
// processes overwrite the log files that they release, until a purge is completed. They also overwrite the document
// files that they replace, until all entries that are in the log now are in document files.
func (g Purges) Fail() {
	g.l.shared.RaiseDisplacedBelow(g.l.shared.Tail())
	g.l.shared.SetPurgeFailed(true)
}

// Failed reports whether a purge has failed or was killed, and no purge was completed after it.
func (g Purges) Failed() bool {
	return g.l.shared.Mapped() && g.l.shared.PurgeFailed()
}

// Displaced reports whether document files that are replaced must be overwritten, because a purge has failed.
func (g Purges) Displaced() bool {
	return g.l.shared.Mapped() && g.l.shared.DisplacedBelow() != 0
}

// WipedDisplaced records that all entries below pos are in document files, and that the document files that these
// entries replaced were overwritten.
func (g Purges) WipedDisplaced(pos LSN) {
	if v := g.l.shared.DisplacedBelow(); v <= pos {
		g.l.shared.SwapDisplacedBelow(v)
	}
}

// Done records that a purge is complete, and that the data that earlier purges left was overwritten too. A continuous
// copy of the log in another place may still contain the purged data, so Done records that such a copy must begin
// again. If Done returns an error, the purge counts as failed.
func (g Purges) Done() error {
	if err := g.l.broken(past.Purged, g.l.Durable()); err != nil {
		return err
	}
	g.l.shared.SetPurgeFailed(false)
	g.l.shared.ClearDisplacedBelow()
	return nil
}

// Overwrites reports whether log files that are released must be overwritten. This is so while a purge is running, and
// after a failed purge until another one is completed.
func (g Purges) Overwrites() bool { return g.Running() || g.Failed() }

// zero overwrites a segment with zeros from an offset to its end, and syncs it. It uses its own file descriptor; the
// beginning of prepare.go explains why.
func (l *FileLog) zero(number uint64, from int64) error {
	f, err := l.o.FS.OpenFile(l.o.wal(segment.Name(number)), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(vfs.Zero(f, from), f.Close())
}

// letGo removes a file of the log. If Overwrites returns true, it overwrites the file first.
func (l *FileLog) letGo(path string) error {
	if l.Purges().Overwrites() {
		return vfs.Unwiped(&l.unwiped, vfs.Wipe(l.o.FS, path))
	}
	return l.o.FS.Remove(path)
}
