package flush

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/view"
	"github.com/varve-db/varve/wal"
)

// spillDue reports whether this round writes the index: because the log since the last index has exceeded its
// limit, because the index is small, or because m requires it. unfinished reports whether a round of a close
// leaves work for the next round.
func (fl *Flusher) spillDue(m Merge, c wal.Checkpoint, unfinished bool) bool {
	set := fl.engine.State().Set()
	if set == nil {
		return false
	}
	defer set.Release()
	if fl.following != nil {
		return false
	}
	if fl.engine.Damaged().Load() {
		return m != mergeEnding
	}
	if c.Flushed.LSN == c.Spilled.LSN && set.LSN() == c.Spilled.LSN {
		return m == MergeAlways && set.Delta() != nil
	}
	switch m {
	case MergeAlways, MergeFlush:
		return true
	case mergeClosing:
		if unfinished {
			return fl.unspilled() >= slowFrom && int64(c.Flushed.LSN-c.Spilled.LSN) > fl.engine.Env().System.SpillBytes
		}
		return fl.engine.State().Overlay().Len() > closingSpill || small(set)
	case mergeEnding:
		n := fl.engine.State().Overlay().Len()
		return !unfinished && n <= endingSpill && (small(set) || n > closingSpill && !index.MergeDue(set))
	}
	return !fl.indexWaits() && (small(set) || int64(c.Flushed.LSN-c.Spilled.LSN) > fl.engine.Env().System.SpillBytes)
}

// smallBase is the size in bytes below which the base of the index counts as small. A small base is written so quickly
// that every round writes it.
const smallBase = 256 << 10

func small(set *index.Set) bool {
	return set.Base() == nil || set.Base().Size() < smallBase
}

// spilling is an index that is being written. The field to is the position up to which the index covers the log.
type spilling struct {
	set    *index.Set // index that the new one is made from
	list   []index.Change
	to     wal.Mark
	target index.Target
}

// spillOf writes the index of a round, or returns the content of the index as pending if the index is to be
// written in the background. spilled reports whether the files in the folder are now an index that covers the log
// up to the position end.
func (fl *Flusher) spillOf(ctx context.Context, held *wal.Held, end wal.Mark, files *filing,
	m Merge) (pending *spilling, spilled bool, err error) {
	if !fl.spillBeside(m) {
		return nil, true, fl.spill(ctx, held, end, files, m == MergeAlways)
	}
	if pending, err = fl.spilling(ctx, held, end, files, false); pending != nil || err != nil {
		return pending, false, err
	}
	if err = fl.settleIndex(); err != nil {
		return nil, false, fl.indexed(ctx, err) // files are written meanwhile
	}
	return nil, true, nil
}

// spill writes an index of the state at the position to. If always is true, this is a new base, into which the old
// base is merged. Otherwise it is a new delta, or, if a merge is due, a new base. spill writes while the document
// files are being made durable. The new index replaces the old one once these files are durable.
func (fl *Flusher) spill(ctx context.Context, held *wal.Held, to wal.Mark, files *filing, always bool) error {
	s, err := fl.spilling(ctx, held, to, files, always)
	if err != nil {
		return err
	}
	if s == nil {
		return fl.settleIndex()
	}
	defer s.set.Release()
	inPlace := s.target.Ready
	s.target.Ready = func() error { return cmp.Or(files.wait(), inPlace()) }
	if err := fl.vectors.Spill(ctx, held, s.set, to, s.list, always, &s.target); err != nil {
		return err
	}
	if fl.engine.Damaged().Swap(false) && fl.engine.Settings().Now().MayRepair() {
		for err = range index.Verify(s.set) {
			break
		}
	}
	if err == nil {
		err = fl.write(ctx, s, always)
		if !errors.Is(err, errs.ErrCorrupt) || !fl.engine.Settings().Now().MayRepair() {
			return err
		}
	}
	if err := files.wait(); err != nil {
		return err
	}
	return fl.rebuilder.Again(ctx, held, to, s.list, err, false)
}

// spilling returns the content of an index of the state at the position end, or nil if the last index already covers
// the log up to this position. always reports whether base and delta are to be merged. Even if the last index covers
// the log up to end, spilling returns the content in two cases: always is true and the last index has a delta, or the
// last index ends at this position and is damaged.
//
// A version that the index names must have been in its file at some time. Otherwise the next process that replaces
// that file would treat this store's own older version as an edit. So if a memory was changed before the position end
// and again after it, spilling first writes the version of the memory at that position to its file.
func (fl *Flusher) spilling(ctx context.Context, held *wal.Held, end wal.Mark, files *filing,
	always bool) (*spilling, error) {
	_ = fl.engine.KeepUp(held)
	set := fl.engine.State().Set()
	if set == nil {
		return nil, errs.ErrClosed
	}
	rotten := fl.engine.Damaged().Load() && end.LSN == set.LSN() // nothing new, but a rebuild is due
	if end.LSN <= set.LSN() && !(always && set.Delta() != nil) && !rotten {
		set.Release()
		return nil, nil // written by a flusher that was killed, or failed, before it recorded that in the checkpoint
	}
	if err := fl.engine.SaveWriters(ctx, end.LSN); err != nil {
		set.Release()
		return nil, err
	}
	if err := fl.engine.SavePurges(end.LSN); err != nil {
		set.Release()
		return nil, err
	}
	list, overtaken, err := fl.engine.StateAt(ctx, set.LSN(), end.LSN)
	if err == nil {
		err = files.put(ctx, nil, overtaken)
	}
	if err != nil {
		set.Release()
		return nil, err
	}
	return &spilling{set: set, list: list, to: end, target: fl.engine.Target(fl.engine.Log().UUID(), end)}, nil
}

// settleIndex makes the present index durable. Another process may have put it in place and then may have been killed
// before it made the index durable.
func (fl *Flusher) settleIndex() error {
	return fl.engine.Env().IOError("syncing", fl.engine.Env().Dir, fl.engine.Env().FS.SyncDir(fl.engine.Env().Dir))
}

// write writes the index s, and replaces the previous index by it. If always is true, or if a merge of base and delta
// is due, write writes a new base; otherwise it writes a new delta.
func (fl *Flusher) write(ctx context.Context, s *spilling, always bool) error {
	ch := index.Changes{List: s.list, Line: func(dst []byte, c index.Change) ([]byte, error) {
		e, err := fl.engine.Log().ReadAt(ctx, c.Version)
		if err != nil {
			return nil, err
		}
		return engine.FinishedLine(dst, &e)
	}}
	began := fl.engine.Env().Clock()
	var w index.Written
	var err error
	if always || index.MergeDue(s.set) {
		fl.backupDue(&s.target)
		if w, err = index.WriteBase(s.set, s.target, ch); err == nil && s.target.Backup {
			fl.backupAt = s.target.Now
		}
	} else {
		w, err = index.WriteDelta(s.set, s.target, ch)
	}
	if w.BackupErr != nil {
		fl.engine.Env().Logger.Warn("the old index could not be kept as a backup", "err", w.BackupErr)
		fl.engine.Env().Event(env.Event{Kind: env.EventBackupFail, Err: w.BackupErr})
	}
	if errors.Is(err, errs.ErrCorrupt) && fl.engine.Settings().Now().MayRepair() {
		fl.engine.Env().Event(env.Event{Kind: env.EventCorruption, Path: index.BaseName, Err: err})
		return err
	}
	if err != nil {
		return fmt.Errorf("writing the index: %w",
			fl.engine.Env().IOError("writing", filepath.Join(fl.engine.Env().Dir, index.BaseName), err))
	}
	fl.noOffsets(w.OffsetsErr)
	fl.engine.Env().Event(env.Event{Kind: env.EventIndex, Path: w.Name, LSN: w.LSN, Bytes: w.Size, Count: len(s.list),
		Took: fl.engine.Env().Clock().Sub(began)})
	return nil
}

// writeOffsets writes the offsets of lines for those index files that lack them: an older program wrote the file, or
// the offsets are damaged. With the offsets, a look-up finds a line without a search. If verify is true, writeOffsets
// first reads all offsets, to find damage. Nothing depends on the offsets, so a failure does not fail the round.
func (fl *Flusher) writeOffsets(held *wal.Held, verify bool) {
	e := fl.engine.Env()
	due := func(set *index.Set) bool {
		if set == nil {
			return false
		}
		defer set.Release()
		if verify {
			for err := range set.CheckOffsets(e.FS, e.Dir) {
				path, _ := view.Place(err, index.OffsetsName)
				fl.engine.OffsetsDamaged(path, err)
			}
		}
		return set.OffsetsDue()
	}
	if !due(fl.engine.State().Set()) || fl.engine.KeepUp(held) != nil || fl.engine.Log().Folder().InPlace() != nil {
		return
	}
	set := fl.engine.State().Set() // another one, if an index was written since
	if set == nil {
		return
	}
	defer set.Release()
	_, err := index.WriteOffsets(set, fl.engine.Target(fl.engine.Log().UUID(), wal.Mark{}), fl.engine.OffsetsDamaged)
	fl.noOffsets(err)
}

// noOffsets logs that the offsets of an index file could not be written.
func (fl *Flusher) noOffsets(err error) {
	if err != nil {
		fl.engine.Env().Logger.Debug("the offsets of the index could not be written: look-ups search the index",
			"err", err)
	}
}

// backupDue sets to.Backup and to.Backups if a backup of the index is due. The old base is then kept as a backup when
// the new base replaces it.
func (fl *Flusher) backupDue(to *index.Target) {
	c := fl.engine.Settings().Now()
	keep, every := c.Backups(), c.BackupEvery()
	if fl.engine.Settings().Unknown() {
		return
	}
	// the backup would have lines of purged documents, and displace an older backup
	if keep == 0 || fl.engine.Log().Purges().Overwrites() {
		return
	}
	if fl.backupAt.IsZero() {
		fl.backupAt = fl.newestBackup()
	}
	if to.Now.Sub(fl.backupAt) >= every || to.Now.Before(fl.backupAt) {
		to.Backup, to.Backups = true, keep
	}
}

func (fl *Flusher) newestBackup() time.Time {
	list, err := index.Backups(fl.engine.Env().FS, fl.engine.Env().Dir)
	if err != nil || len(list) == 0 {
		return time.Time{}
	}
	info, err := fl.engine.Env().FS.Stat(filepath.Join(fl.engine.Env().Dir, filepath.FromSlash(list[0].Name)))
	if err != nil {
		return time.Time{}
	}
	return info.Mtime
}
