package wal

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"slices"
	"sync"

	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// freer records which part of the log may be released. The file of a segment is removed one call of release
// later than the segment was released, so that a sync is in between: that sync, after the new position spilled
// was recorded, has made the files and the index durable that replace the segment.
type freer struct {
	mu      sync.Mutex
	holders map[string]LSN
	ripe    LSN // position up to which the previous call released
}

// start sets the position up to which the log may already be released when this process opens it.
func (f *freer) start(spilled LSN) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ripe = max(f.ripe, spilled)
}

// Release allows everything below an LSN to be removed from the log, on behalf of a named holder. The lowest
// LSN of all holders decides. The flusher calls Release. Holders in other processes are represented by the
// spilled mark and hold.lock.
func (a Archive) Release(held *Held, holder string, below LSN) error {
	if err := held.proves(a.l); err != nil {
		return err
	}
	a.l.free.mu.Lock()
	if a.l.free.holders == nil {
		a.l.free.holders = map[string]LSN{}
	}
	a.l.free.holders[holder] = below
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
	return a.l.release(held, ripe)
}

// release archives and recycles the segments that are completely below a position, and then removes what
// exceeds the archive's limits.
func (l *FileLog) release(held *Held, below LSN) error {
	numbers, err := l.numbers()
	// The segment with the last released frame stays: a mark at the very end of that segment is found in no
	// other.
	end := l.geo.Number(below - 1)
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
		if err := l.archive(n); err != nil {
			return err
		}
		if err := l.recycle(n); err != nil {
			return err
		}
	}
	l.forgetFiles(end)
	return l.keepBudget()
}

// numbers returns the numbers of the segment files, ascending. Loops over segments use these numbers, not
// numbers computed from the recorded positions, which may be wrong.
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

// recycle renames the file of a segment to the next segment that will be needed. It removes the file instead if
// the file does not have the size of a segment, has another hard link, or is not needed as a spare segment. Before
// the rename it zeroes and syncs the first block, so the new segment has no start; the old frames are invalid in
// it, because their checksums use another seed. A process that still reads the file under the old number
// notices that the frames are gone.
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
