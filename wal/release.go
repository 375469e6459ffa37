package wal

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"slices"
	"sync"

	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// freer records which part of the log may be released. A call of Release archives and recycles only the segments that
// the previous call was permitted to release. Between the two calls there is a sync, which makes the files and the
// index that replace these segments durable.
type freer struct {
	mu      sync.Mutex
	holders map[string]LSN
	ripe    LSN // position up to which the previous call released
}

// start sets the position up to which the log was already released when this process opened it.
func (f *freer) start(spilled LSN) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ripe = max(f.ripe, spilled)
}

// Release permits the removal of everything below pos from the log, on behalf of a named holder. The lowest
// position of all holders decides. The flusher calls Release. For holders in other processes, the position Spilled
// and hold.lock are used instead.
func (a Archive) Release(ctx context.Context, held *Held, holder string, pos LSN) error {
	if err := held.proves(a.l); err != nil {
		return err
	}
	a.l.free.mu.Lock()
	if a.l.free.holders == nil {
		a.l.free.holders = map[string]LSN{}
	}
	a.l.free.holders[holder] = pos
	lowest := LSN(math.MaxUint64)
	for _, at := range a.l.free.holders {
		lowest = min(lowest, at)
	}
	ripe := min(a.l.free.ripe, lowest)
	a.l.free.ripe = min(lowest, a.l.shared.Spilled())
	a.l.free.mu.Unlock()
	if ripe == 0 {
		return nil
	}
	return a.l.release(ctx, held, ripe)
}

// release archives and recycles the segments that are completely below pos. It then removes the copies that exceed
// the archive's limits.
func (l *FileLog) release(ctx context.Context, held *Held, pos LSN) error {
	numbers, err := l.numbers()
	// The segment with the last released frame stays: a mark at the very end of that segment is found in no
	// other.
	end := l.geo.Number(pos - 1)
	if err != nil || len(numbers) == 0 {
		return err
	}
	// While a backup is copying nothing is removed, within the budget of the hold.
	copied, locked, err := l.copied(held, numbers[0])
	if err != nil || copied {
		return err
	}
	if locked {
		defer l.unlock(roleHold)
	}
	for _, n := range numbers {
		if n >= end {
			break
		}
		if err := l.archive(ctx, n); err != nil {
			return err
		}
		if err := l.recycle(n); err != nil {
			return err
		}
	}
	l.forgetFiles(end)
	return l.keepBudget()
}

// numbers returns the numbers of the segment files in ascending order. Loops over segments use these numbers and do not
// compute them from recorded positions, which may be wrong.
func (l *FileLog) numbers() (list []uint64, err error) {
	names, err := l.o.FS.ReadDir(l.o.walDir())
	if err != nil {
		return nil, l.ioError("reading", l.o.walDir(), err)
	}
	for _, name := range names {
		if n, ok := segment.ParseName(name); ok {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return list, nil
}

// recycle uses the file of a segment again: it renames the file to the next segment that will be needed. Before that,
// it overwrites the first block with zeros and syncs it, so that the new segment has no start. The old frames are
// invalid in the new segment, because their checksums have another seed. A process that still reads the old segment
// notices that its frames are gone. If the file does not have the size of a segment, has another hard link, or is not
// needed, recycle removes it.
func (l *FileLog) recycle(number uint64) error {
	name := l.o.wal(segment.Name(number))
	info, err := l.o.FS.Stat(name)
	if err != nil {
		return err
	}
	if l.shared.Tail() == 0 { // another program has overwritten the page, or another process recovers
		return l.older()
	}
	tail := l.geo.Number(l.shared.Tail() - 1)
	next := tail + 1
	for next <= tail+past.Spares {
		if _, err = l.o.FS.Stat(l.o.wal(segment.Name(next))); err != nil {
			break
		}
		next++
	}
	// if the file is linked, only this name is removed
	if uint64(info.Size) != l.geo.Size || info.Nlink > 1 || !errors.Is(err, fs.ErrNotExist) {
		return l.remove(name)
	}
	f, err := l.o.FS.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return l.ioError("opening", name, err)
	}
	_, err = f.WriteAt(make([]byte, 4096), 0)
	if err == nil {
		err = f.Sync()
	}
	if err2 := f.Close(); err == nil {
		err = err2
	}
	if err != nil {
		return l.ioError("recycling", name, err)
	}
	err = l.o.FS.RenameNew(name, l.o.wal(segment.Name(next)))
	if errors.Is(err, fs.ErrExist) {
		return l.remove(name)
	}
	if err != nil {
		return l.ioError("recycling", name, err)
	}
	return l.o.FS.SyncDir(l.o.walDir())
}

func (l *FileLog) remove(name string) error {
	if err := l.letGo(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return l.ioError("removing", name, err)
	}
	return l.o.FS.SyncDir(l.o.walDir())
}
