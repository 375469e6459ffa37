package wal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
)

// Space is written out ahead of the tail, because a commit that makes a file grow also has to wait for the file
// system's journal. Space is written out as zeros, never sparse, in steps, so that a small store stays small.
// Puts must leave a reserve free, so a full disk refuses puts while deletes still have space.
//
// The zeros of a step are written under append.lock, so that no process appends where they go; they are synced
// without it. A separate file descriptor is used for that sync: the system reports a device error once per
// descriptor, and the descriptor of the commits must not miss it.

// preparer is a background goroutine that writes zeros into the file after the end of the log, so that commits
// overwrite existing blocks.
type preparer struct {
	once    sync.Once
	kick    chan struct{}
	stop    chan struct{}
	stopped sync.WaitGroup
	made    atomic.Uint64 // number of temporary files, for their names
	next    atomic.Uint64 // number of the newest segment known to exist
}

// reserve returns the size of the reserve in bytes: the last part of the zeros after the log, which only deletes and
// the log's own frames may use.
func (l *FileLog) reserve() uint64 { return min(256<<10, l.geo.Size/8) }

// step returns the number of bytes of zeros that are written at once after the log, which ends at pos. This is the
// number of bytes that the segment already contains, but at least 512 KiB and at most 8 MiB, and never more than
// an eighth of a segment. Measured with commits of 40 KB: 270 us per commit on average with steps of 512 KiB, 165
// us with 8 MiB, and 125 us in a file that was written completely beforehand. A commit takes two to ten times as
// long while another goroutine writes and syncs zeros.
func (l *FileLog) step(pos LSN) uint64 {
	return min(l.geo.Size/8, max(512<<10, min(8<<20, pos%l.geo.Size)))
}

// room makes sure that the segment is written with zeros up to end, and that the reserve follows. If deletes is true,
// the write only deletes, and on a full disk the reserve may be missing. The caller holds append.lock. If the disk is
// full, the error matches errs.ErrDiskFull.
func (l *FileLog) room(end LSN, deletes bool) error {
	number := l.geo.Number(end - 1)
	prepared, err := l.prepared(number)
	if err != nil {
		return err
	}
	last := l.geo.End(number)
	if want := min(end+l.reserve(), last); prepared < want {
		// Not the part that this write is about to fill.
		err := l.writeOut(number, max(prepared, end), min(max(want, end+l.step(end-1)), last))
		if err != nil {
			l.unprepare(number, prepared)
		}
		if err != nil && !(vfs.IsDiskFull(err) && deletes && end <= prepared) {
			return l.full(err)
		}
	}
	if end+l.reserve() > last {
		if err := l.ensureSegment(number + 1); err != nil && !(vfs.IsDiskFull(err) && deletes) {
			if end > prepared {
				l.unprepare(number, prepared)
			}
			return l.full(err)
		}
	}
	return nil
}

// unprepare cuts off the zeros that room wrote for a write that was then not made. Otherwise there would be a hole
// between these zeros and the earlier ones, which end at the position end. The caller holds append.lock.
func (l *FileLog) unprepare(number uint64, end LSN) {
	tail := l.shared.Tail()
	if l.geo.Number(end-1) != number && l.geo.Number(tail-1) != number {
		end = l.geo.Start(number) + l.step(l.geo.Start(number)) // the write would have been the first in the segment
	}
	if l.geo.Number(end-1) != number || end < tail {
		return // the prepared part is unknown: a hole costs deletes their space, a cut would cost data
	}
	l.cut(number, int64(end-l.geo.Start(number)))
	l.shared.SetPrepared(end)
}

// cut shortens a segment's file to size bytes. If the segment was recycled, the part that is cut off has older frames.
// If released data must be overwritten because of a purge, cut first overwrites that part. If that fails, the file is
// not cut, and the next purge overwrites the frames (see wipeAhead).
func (l *FileLog) cut(number uint64, size int64) {
	if l.Purges().Overwrites() && l.zero(number, size) != nil {
		return
	}
	if f, err := l.segment(number); err == nil {
		_ = f.Truncate(size)
	}
}

// prepared returns the position up to which a segment's file is written with frames or zeros. For the newest segment, a
// word in the shared page has this position.
func (l *FileLog) prepared(number uint64) (LSN, error) {
	at := l.shared.Prepared()
	if at > l.geo.Start(number) && at <= l.geo.End(number) {
		return at, nil
	}
	f, err := l.segment(number)
	if err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return l.geo.Start(number) + min(uint64(info.Size), l.geo.Size), nil
}

func (l *FileLog) full(err error) error {
	if vfs.IsDiskFull(err) {
		l.o.Event(Event{Kind: EventDiskFull, Path: "wal", Err: err})
		return l.noSpace(fmt.Errorf("writing zeros after the log in %s: %w", l.o.walDir(), err))
	}
	return l.ioError("writing zeros after the log in", l.o.walDir(), err)
}

// writeOut writes zeros between two positions of a segment, both after the tail. The caller holds append.lock.
func (l *FileLog) writeOut(number uint64, from, end LSN) error {
	f, err := l.segment(number)
	if err != nil {
		return err
	}
	for from < end {
		n := min(end-from, uint64(len(zeroStep)))
		if _, err := f.WriteAt(zeroStep[:n], int64(from-l.geo.Start(number))); err != nil {
			return fmt.Errorf("filling %s with zeros: %w", segment.Name(number), err)
		}
		from += n
		l.shared.SetPrepared(from)
	}
	return nil
}

var zeroStep [1 << 20]byte

// ensureSegment creates the file of a segment if it is missing. The new file has one step of zeros, and the file and
// its name are durable.
func (l *FileLog) ensureSegment(number uint64) error {
	name := l.o.wal(segment.Name(number))
	if _, err := l.o.FS.Stat(name); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	tmp, err := l.makeSegment(l.step(l.geo.Start(number)), nil, nil)
	if err != nil {
		return err
	}
	if err := l.rename(tmp, number); err != nil {
		return err
	}
	return l.o.FS.SyncDir(l.o.walDir())
}

// makeSegment writes and syncs a file under a temporary name, and returns the path of the file. The file has size
// bytes of zeros; if start is not empty, the file begins with this start frame. After each MiB makeSegment calls pace,
// if pace is not nil, with the offset at which this MiB begins and the time that writing it took.
func (l *FileLog) makeSegment(size uint64, start []byte,
	pace func(f vfs.File, made uint64, took time.Duration) error) (string, error) {
	tmp := l.o.wal(fmt.Sprintf("%d-%d.new", l.host.PID, l.prep.made.Add(1)))
	f, err := vfs.CreateNew(l.o.FS, tmp, l.o.FileMode)
	if err != nil {
		return "", err
	}
	for at := uint64(0); at < size && err == nil; at += uint64(len(zeroStep)) {
		began := l.o.Clock()
		if _, err = f.WriteAt(zeroStep[:min(uint64(len(zeroStep)), size-at)], int64(at)); err == nil && pace != nil {
			err = pace(f, at, l.o.Clock().Sub(began))
		}
	}
	if err == nil && len(start) > 0 {
		_, err = f.WriteAt(start, 0)
	}
	if err == nil {
		err = f.Sync()
	}
	if err2 := f.Close(); err == nil {
		err = err2
	}
	if err != nil {
		_ = l.dropNew(tmp)
		return "", err
	}
	return tmp, nil
}

// dropNew removes a temporary file that this process made in wal/. If the log was replaced in the meantime, it leaves
// the file, because the folder belongs to another log; the recovery of that log removes such files.
func (l *FileLog) dropNew(tmp string) error {
	if err := l.Folder().InPlace(); err != nil {
		return err
	}
	return l.o.FS.Remove(tmp)
}

// rename gives tmp, a finished file of zeros, the name of a segment. If another writer has already created that
// segment, rename removes the file tmp.
func (l *FileLog) rename(tmp string, number uint64) error {
	err := l.o.FS.RenameNew(tmp, l.o.wal(segment.Name(number)))
	if err != nil {
		_ = l.dropNew(tmp)
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
	}
	return err
}

// enter prepares the first use of a segment's file. It makes the name of the file durable, because the process that
// made the file may have been killed before it did so. The caller holds append.lock.
func (l *FileLog) enter(number uint64) error {
	if err := l.ensureSegment(number); err != nil {
		return l.full(err)
	}
	if err := l.o.FS.SyncDir(l.o.walDir()); err != nil {
		return l.ioError("syncing", l.o.walDir(), err)
	}
	f, err := l.segment(number)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return l.ioError("checking", f.Name(), err)
	}
	size := min(uint64(info.Size), l.geo.Size)
	l.shared.SetPrepared(l.geo.Start(number) + size)
	return nil
}

// kickPrepare wakes the preparer if few zeros are left after the tail.
func (l *FileLog) kickPrepare(tail LSN) {
	if !l.wantsPrepare(tail) {
		return
	}
	if l.o.Inline {
		return // room prepares space when it is needed
	}
	l.prep.once.Do(func() {
		l.prep.stopped.Go(l.prepareLoop)
	})
	select {
	case l.prep.kick <- struct{}{}:
	default:
	}
}

// wantsPrepare reports whether the preparer should write the next step of zeros in the segment, or create the next
// segment. The next segment is a file of its own, so no commit waits until its zeros are synced.
func (l *FileLog) wantsPrepare(tail LSN) bool {
	number := l.geo.Number(tail - 1)
	prepared, last := l.shared.Prepared(), l.geo.End(number)
	if prepared < last && l.low(tail, prepared) {
		return true
	}
	return l.wantsNext(tail) && l.prep.next.Load() <= number
}

// low reports whether few zeros are left after the tail: fewer than the reserve and half a step together. A step
// counts here as at most 512 KiB.
func (l *FileLog) low(tail, prepared LSN) bool {
	return tail+l.reserve()+min(l.step(tail-1), 512<<10)/2 > prepared
}

func (l *FileLog) wantsNext(tail LSN) bool {
	return uint64(l.geo.Offset(tail-1)) > l.geo.Size/4
}

func (l *FileLog) prepareLoop() {
	ctx, cancel := context.WithCancel(context.Background())
	l.prep.stopped.Go(func() { // so that Close need not wait for a lock that this goroutine waits for
		<-l.prep.stop
		cancel()
	})
	for {
		select {
		case <-l.prep.stop:
			return
		case <-l.prep.kick:
		}
		if l.Folder().InPlace() != nil {
			return
		}
		if err := l.prepare(ctx); err != nil {
			l.o.Logger.Debug("preparing space", "err", err)
		}
	}
}

// prepare writes the segment's next step of zeros, and creates the next segment.
func (l *FileLog) prepare(ctx context.Context) error {
	if err := l.lock(ctx, roleAppend, vfs.ModeExclusive); err != nil {
		return err
	}
	err := l.stillOurs()
	tail := l.shared.Tail()
	if err == nil && tail == 0 {
		err = l.older()
	}
	number := l.geo.Number(tail - 1)
	prepared, last := l.shared.Prepared(), l.geo.End(number)
	if err == nil && prepared < last && l.low(tail, prepared) {
		err = l.writeOut(number, max(prepared, tail), min(prepared+l.step(tail-1), last))
	}
	l.unlock(roleAppend)
	if err != nil {
		return err
	}
	if l.wantsNext(tail) && l.prep.next.Load() <= number {
		if err := l.prepareNext(ctx, number+1); err != nil {
			return err
		}
		l.prep.next.Store(number + 1)
	}
	return nil
}

// prepareNext creates the whole next segment before commits need it. It writes the file in small parts and syncs each
// part. Between the parts it pauses, unless the tail approaches the end of its segment faster than the file grows.
// Measured with 64 goroutines: if commits had to sync the zeros together with their own frames, the rate was a fifth
// lower.
func (l *FileLog) prepareNext(ctx context.Context, number uint64) error {
	if _, err := l.o.FS.Stat(l.o.wal(segment.Name(number))); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !l.shared.RaiseCreating(number) {
		return nil // another process creates it; if that process dies, room creates what is needed
	}
	if err := l.dropLeft(); err != nil {
		l.o.Logger.Debug("removing an unfinished segment failed", "err", err)
	}
	begun := l.shared.Tail()
	left := l.geo.End(number-1) - begun
	tmp, err := l.makeSegment(l.geo.Size, nil, func(f vfs.File, made uint64, took time.Duration) error {
		select {
		case <-l.prep.stop:
			return errs.ErrClosed
		default:
		}
		began := l.o.Clock()
		if err := f.Datasync(); err != nil {
			return err
		}
		if l.shared.Tail()-begun > left*made/l.geo.Size {
			return nil // the tail approaches faster than this loop advances
		}
		return l.o.Sleep(ctx, took+l.o.Clock().Sub(began))
	})
	if vfs.IsDiskFull(err) { // a small segment is enough
		tmp, err = l.makeSegment(l.step(l.geo.Start(number)), nil, nil)
	}
	if err != nil {
		return err
	}
	return l.nameNext(ctx, tmp, number)
}

// nameNext gives tmp, the file that prepareNext has made, the name of the segment with the given number. In the
// meantime the tail may have passed that segment, and other processes may have created, written and released it; a
// file with this number would then be below the first segment of the log. So nameNext checks the tail and renames the
// file under append.lock, without which the tail does not move. Then it makes the new name durable. A commit that uses
// the segment before that makes the name durable itself (see enter).
func (l *FileLog) nameNext(ctx context.Context, tmp string, number uint64) error {
	if err := l.lock(ctx, roleAppend, vfs.ModeExclusive); err != nil {
		_ = l.dropNew(tmp)
		return err
	}
	err := l.stillOurs()
	passed := err != nil || l.geo.Number(l.shared.Tail()-1) >= number
	if passed {
		if l.Folder().Replaced() == nil { // stillOurs has just compared
			err = errors.Join(err, l.o.FS.Remove(tmp))
		}
	} else {
		err = l.rename(tmp, number)
	}
	l.unlock(roleAppend)
	if passed || err != nil {
		return err
	}
	return l.o.FS.SyncDir(l.o.walDir())
}
