package varve

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
)

// spillDue says whether this round writes the index: the log since the last one
// has passed its budget, the index is small, or a flush or a close wants it.
func (st *Store) spillDue(m merge, c wal.Checkpoint) bool {
	set := st.state.Set()
	if set == nil {
		return false
	}
	defer set.Release()
	if st.rotten.Load() {
		return true
	}
	if c.Flushed.LSN == c.Spilled.LSN && set.LSN() == c.Spilled.LSN {
		return m == mergeAlways && set.Delta() != nil
	}
	switch m {
	case mergeAlways, mergeFlush:
		return true
	case mergeClosing:
		return st.state.Overlay().Len() > closingSpill || small(set)
	}
	return small(set) || int64(c.Flushed.LSN-c.Spilled.LSN) > st.env.System.SpillBytes
}

// smallBase is up to where a base is so quickly written that every round does.
const smallBase = 256 << 10

func small(set *index.Set) bool {
	return set.Base() == nil || set.Base().Size() < smallBase
}

// spill writes the state as of a mark as a new delta, or merged, as a new base.
// What it says of a memory must have been in its file at some time, or whoever
// replaces that file next would take our own older version for an edit: so a
// memory that was changed before the mark, and again since, is put into its file
// first, as it is now.
//
// It is written while the files are on their way to the disk, and takes its
// place when these are durable.
func (st *Store) spill(ctx context.Context, to wal.Mark, files *filing, always bool) error {
	st.keepUp()
	set := st.state.Set()
	if set == nil {
		return errs.ErrClosed
	}
	defer set.Release()
	rotten := st.rotten.Load() && to.LSN == set.LSN() // nothing new, and still due
	if to.LSN <= set.LSN() && !(always && set.Delta() != nil) && !rotten {
		return nil // written by a flusher that was killed before the checkpoint said so
	}
	list, overtaken, err := st.stateAt(ctx, set.LSN(), to.LSN)
	if err != nil {
		return err
	}
	if err := files.put(ctx, overtaken); err != nil {
		return err
	}
	target := st.target(st.log.UUID(), to)
	target.Ready = files.wait
	if err := st.spillVectors(ctx, set, to, list, always, &target); err != nil {
		return err
	}
	ch := index.Changes{List: list, Line: func(dst []byte, c index.Change) ([]byte, error) {
		e, err := st.log.ReadAt(ctx, c.Version)
		if err != nil {
			return nil, err
		}
		return finishedLine(dst, &e)
	}}
	if st.rotten.Swap(false) && st.settings.Now().MayRepair() {
		var rot error
		for err := range index.Verify(set) {
			rot = err
			break
		}
		if rot != nil {
			if err := files.wait(); err != nil {
				return err
			}
			return st.reindex(ctx, to, list, rot)
		}
	}
	began := st.env.Clock()
	var w index.Written
	if always || index.MergeDue(set) {
		st.backupDue(&target)
		if w, err = index.WriteBase(set, target, ch); err == nil && target.Backup {
			st.flusher.backupAt = target.Now
		}
	} else {
		w, err = index.WriteDelta(set, target, ch)
	}
	if w.BackupErr != nil {
		st.env.Logger.Warn("the old index could not be kept as a backup", "err", w.BackupErr)
		st.env.Event(env.Event{Kind: env.EventBackupFail, Err: w.BackupErr})
	}
	if errors.Is(err, errs.ErrCorrupt) && st.settings.Now().MayRepair() {
		st.env.Event(env.Event{Kind: env.EventCorruption, Path: index.BaseName, Err: err})
		if err := files.wait(); err != nil {
			return err
		}
		return st.reindex(ctx, to, list, err)
	}
	if err != nil {
		return fmt.Errorf("writing the index: %w", st.env.IOError("writing", filepath.Join(st.env.Dir, index.BaseName), err))
	}
	st.env.Event(env.Event{Kind: env.EventIndex, Path: w.Name, LSN: w.LSN, Bytes: w.Size, Count: len(list), Took: st.env.Clock().Sub(began)})
	return nil
}

// keptLines is how many bytes of lines a rewrite of the index keeps at hand. It
// wants them in the order of the keys, and would read the rest of their frames
// once more.
const keptLines = 16 << 20

// stateAt lists what changed in [from, to) as it stood at to. A key that
// changed again since is taken with the version that it had then, and listed in
// overtaken with its newest.
func (st *Store) stateAt(ctx context.Context, from, to wal.LSN) (list []index.Change, overtaken []index.At, err error) {
	changes := st.state.Changes(from, 1<<62)
	list = make([]index.Change, 0, len(changes))
	lines := lineStore{left: keptLines}
	r := st.log.Reader()
	for _, at := range changes {
		pos := at.Pos
		e, err := r.At(ctx, pos)
		if err != nil {
			return nil, nil, err
		}
		for pos >= to {
			if pos, e, err = st.versionBefore(ctx, e, from); err != nil {
				return nil, nil, err
			}
		}
		if pos < from {
			continue
		}
		if pos != at.Pos {
			overtaken = append(overtaken, at)
		}
		c, ok, err := st.indexChange(&e)
		if err != nil {
			return nil, nil, err
		}
		if !ok {
			continue
		}
		if c.Finished, err = lines.keep(&e); err != nil {
			return nil, nil, err
		}
		list = append(list, c)
	}
	return list, overtaken, nil
}

// versionBefore is the version of a key that an entry names as the one before it; a
// position below from where the set has that, and where it names none that there is.
func (st *Store) versionBefore(ctx context.Context, e wal.Entry, from wal.LSN) (wal.LSN, wal.Entry, error) {
	view, err := state.Read(&e)
	if err != nil || view.Previous < from {
		return view.Previous, e, err
	}
	before, err := st.log.ReadAt(ctx, view.Previous)
	if err == nil && before.Key != e.Key {
		err = errMoved
	}
	if err == nil {
		_, err = state.Check(&before)
	}
	if noVersion(err) {
		return 0, before, nil
	}
	return view.Previous, before, err
}

// indexChange is what an entry changes in the index, but for its line; false when
// the index has nothing of its kind.
func (st *Store) indexChange(e *wal.Entry) (index.Change, bool, error) {
	k := st.kinds.kindOf(e.Key)
	if k == nil {
		return index.Change{}, false, nil
	}
	c := index.Change{Section: k.section, ID: e.Key[1:], Version: e.LSN, Deleted: e.Delete}
	if k != st.kinds.assemblies || e.Delete {
		return c, true, nil
	}
	view, err := state.Read(e)
	if err == nil {
		c.Members, err = assembly.MembersOf(view.Line)
	}
	if err != nil {
		err = fmt.Errorf("entry %d: %w", e.LSN, err)
	}
	return c, true, err
}

// finishedLine appends the line of an entry as the index has it.
func finishedLine(dst []byte, e *wal.Entry) ([]byte, error) {
	view, err := state.Read(e)
	if err != nil {
		return nil, fmt.Errorf("entry %d: %w", e.LSN, err)
	}
	return index.Finish(dst, view.Line, e.LSN, e.Time.UnixMicro())
}

// lineStore holds lines, many to an allocation.
type lineStore struct {
	chunk []byte
	left  int
}

// keep returns the finished line of an entry, nil for a deletion and when there
// is no more room.
func (s *lineStore) keep(e *wal.Entry) ([]byte, error) {
	if e.Delete || s.left <= 0 {
		return nil, nil
	}
	const chunk, most = 64 << 10, 16 << 10
	if cap(s.chunk)-len(s.chunk) < most {
		s.chunk = make([]byte, 0, chunk)
	}
	from := len(s.chunk)
	b, err := finishedLine(s.chunk, e)
	if err != nil {
		return nil, err
	}
	s.chunk = b
	s.left -= len(b) - from
	return b[from:len(b):len(b)], nil
}

// backupDue has the old base kept if the interval is over.
func (st *Store) backupDue(to *index.Target) {
	c := st.settings.Now()
	keep, every := c.Backups(), c.BackupEvery()
	if keep == 0 || st.log.Overwrites() { // it would have lines of what is purged, and make an older one go
		return
	}
	if st.flusher.backupAt.IsZero() {
		st.flusher.backupAt = st.newestBackup()
	}
	if to.Now.Sub(st.flusher.backupAt) >= every || to.Now.Before(st.flusher.backupAt) {
		to.Backup, to.Backups = true, keep
	}
}

func (st *Store) newestBackup() time.Time {
	list, err := index.Backups(st.env.FS, st.env.Dir)
	if err != nil || len(list) == 0 {
		return time.Time{}
	}
	info, err := st.env.FS.Stat(filepath.Join(st.env.Dir, filepath.FromSlash(list[0].Name)))
	if err != nil {
		return time.Time{}
	}
	return info.Mtime
}
