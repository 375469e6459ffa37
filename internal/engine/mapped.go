package engine

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/index/table"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
)

// Origin returns a description of the source of a rebuilt index, for messages.
func Origin(from string) string {
	if from == "" {
		return "the files"
	}
	return from + " and the log"
}

// ErrDistrusted is the error for an index that can be read but is not used.
var ErrDistrusted = errors.New("the index belongs to another log")

// loadIndex maps the current index files of store id, which must cover the log up to spilled. If fresh is true, the log
// begins at spilled, so no index of this log was written yet.
func (eng *Engine) loadIndex(id uuid.UUID, spilled wal.LSN, fresh bool) (*index.Set, error) {
	want := index.Want{Store: id.String(), Spilled: spilled, Damaged: eng.OffsetsDamaged}
	if fresh {
		want.Start = spilled // nothing was spilled yet
	}
	prev := eng.state.Set()
	if prev != nil {
		defer prev.Release()
	}
	set, err := index.Load(eng.env.FS, eng.env.Dir, want, prev)
	if err != nil && env.Passing(err) {
		err = eng.env.IOError("mapping", filepath.Join(eng.env.Dir, index.BaseName), err)
	}
	return set, err
}

// CatchUp applies all log entries that any process has made durable.
func (eng *Engine) CatchUp(ctx context.Context) error {
	if err := eng.MovedSince(); err != nil {
		return err
	}
	if err := eng.log.CatchUp(ctx); err != nil {
		return err
	}
	eng.RemapDue()
	return nil
}

// RemapDue maps the current index files if another process has written newer ones.
func (eng *Engine) RemapDue() {
	if eng.log.Folder().Replaced() != nil {
		return // the index at this path may be that of another store
	}
	if eng.log.Spilled() > eng.state.From() || eng.log.Notes().IndexRebuilds() != eng.remade.Load() {
		_ = eng.Refresh() // on failure the old index and the overlay are still right together
	}
}

// Refresh maps the index that another process has written. If that fails, the old index and the overlay together are
// still correct. If another goroutine is already mapping the index, Refresh returns nil without waiting.
func (eng *Engine) Refresh() error {
	if !eng.refreshing.TryLock() {
		return nil // another goroutine is mapping it
	}
	defer eng.refreshing.Unlock()
	return eng.remap(false)
}

// remap maps the current index files. If held is true, the caller holds flush.lock, and remap also verifies that the
// index is not of an earlier log of this folder.
func (eng *Engine) remap(held bool) error {
	remade := eng.log.Notes().IndexRebuilds()
	set, err := eng.loadIndex(eng.log.UUID(), eng.log.Spilled(), false)
	if err == nil && held {
		if err = state.Agrees(set, eng.log.Durable(), eng.chain); err != nil {
			_ = set.Release()
		}
	}
	if err == nil {
		err = eng.state.Swap(set)
	}
	if err != nil {
		eng.env.Logger.Debug("mapping a newer index", "err", err)
		return err
	}
	eng.remade.Store(remade)
	eng.log.Archive().CloseReleased()
	return nil
}

// chain returns the log's chain hash at position pos. If no valid frame begins at pos, chain returns the hash at
// the beginning of the next segment and true; this hash is 0 if no valid frame begins there either. chain returns
// false if the log does not have the position.
func (eng *Engine) chain(pos wal.LSN) (uint64, bool) {
	if m := eng.log.AppliedMark(); pos >= m.LSN {
		return m.Sum, pos == m.LSN
	}
	m, err := eng.log.MarkBefore(context.Background(), pos)
	if size := eng.log.SegmentSize(); errors.Is(err, errs.ErrCorrupt) {
		m, _ = eng.log.MarkBefore(context.Background(), (pos/size+1)*size)
		return m.Sum, true
	}
	return m.Sum, err == nil
}

// Healed reports whether a different index is mapped now than the index in which a look-up found damage. swaps is the
// swap counter (State.Swaps) of the damaged index. If the index files in the folder were replaced, Healed first maps
// the new files. It compares the files themselves, because a process may have been killed after it rebuilt the index
// and before it could report that.
func (eng *Engine) Healed(swaps uint64) bool {
	eng.refreshing.Lock()
	defer eng.refreshing.Unlock()
	return eng.state.Swaps() != swaps || !eng.stands() && eng.remap(false) == nil
}

// KeepUp maps the current index files. It must be called before another index is made from the mapped one. It must also
// be called before anything is written to document files, because the files of all entries that the index covers are
// treated as written. If the current index cannot be used, or is not of this log, KeepUp returns an error, and the
// mapped index stays in use.
func (eng *Engine) KeepUp(_ *wal.Held) error {
	eng.refreshing.Lock()
	defer eng.refreshing.Unlock()
	if eng.stands() {
		return nil
	}
	return eng.remap(true)
}

// stands reports whether the mapped index files are still the files of the index in the folder.
func (eng *Engine) stands() bool {
	set := eng.state.Set()
	if set == nil {
		return true
	}
	defer set.Release()
	return set.Stands(eng.env.FS, eng.env.Dir)
}

// inPlace returns errs.ErrReplaced if the store's folder is no longer the one that was opened. It returns nil while the
// log is being opened, because the opened folder is not recorded yet.
func (eng *Engine) inPlace() error {
	if eng.log == nil {
		return nil
	}
	return eng.log.Folder().InPlace()
}

// Target returns the parameters for writing an index that covers the log up to mark. The written file is renamed
// into place only if the store's folder is still the one that was opened.
func (eng *Engine) Target(store uuid.UUID, mark wal.Mark) index.Target {
	return index.Target{
		FS: eng.env.FS, Dir: eng.env.Dir, Perm: eng.env.FileMode,
		Temp:  filepath.Join(eng.env.Dir, "tmp", "index."+eng.token),
		Store: store.String(), LSN: mark.LSN, Chain: mark.Sum, Now: eng.env.Clock(),
		Model: eng.state.ModelBefore(mark.LSN),
		Ready: eng.inPlace, Offsets: true,
	}
}

// OffsetsDamaged reports that the offsets of an index file are damaged. Look-ups search the file from then on, and the
// next flush writes the offsets again.
func (eng *Engine) OffsetsDamaged(path string, err error) {
	eng.env.Logger.Warn("the offsets of the index are damaged: look-ups are slower, because they search the index, "+
		"until the next flush writes the offsets again",
		"path", path, "err", err)
	eng.env.Event(env.Event{Kind: env.EventCorruption, Path: path, Err: err,
		Note: "look-ups are slower, because they search the index, until the next flush writes the offsets of the " +
			"index again"})
}

// Tables identifies the files of an index: equal values mean the same files.
type Tables [2]*table.Table

// TablesOf returns the value that identifies the files of an index.
func TablesOf(set *index.Set) Tables { return Tables{set.Base(), set.Delta()} }
