package varve

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/wal"
)

// spillDue says whether this round writes the index: the log since the last one
// has passed its budget, the index is small, or a flush or a close wants it.
func (st *Store) spillDue(m merge, c wal.Checkpoint) bool {
	set := st.engine.State.Set()
	if set == nil {
		return false
	}
	defer set.Release()
	if st.engine.Rotten.Load() {
		return true
	}
	if c.Flushed.LSN == c.Spilled.LSN && set.LSN() == c.Spilled.LSN {
		return m == mergeAlways && set.Delta() != nil
	}
	switch m {
	case mergeAlways, mergeFlush:
		return true
	case mergeClosing:
		return st.engine.State.Overlay().Len() > closingSpill || small(set)
	}
	return small(set) || int64(c.Flushed.LSN-c.Spilled.LSN) > st.engine.Env.System.SpillBytes
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
	st.engine.KeepUp()
	set := st.engine.State.Set()
	if set == nil {
		return errs.ErrClosed
	}
	defer set.Release()
	rotten := st.engine.Rotten.Load() && to.LSN == set.LSN() // nothing new, and still due
	if to.LSN <= set.LSN() && !(always && set.Delta() != nil) && !rotten {
		return nil // written by a flusher that was killed before the checkpoint said so
	}
	list, overtaken, err := st.engine.StateAt(ctx, set.LSN(), to.LSN)
	if err != nil {
		return err
	}
	if err := files.put(ctx, overtaken); err != nil {
		return err
	}
	target := st.engine.Target(st.engine.Log.UUID(), to)
	target.Ready = files.wait
	if err := st.vectors.Spill(ctx, set, to, list, always, &target); err != nil {
		return err
	}
	ch := index.Changes{List: list, Line: func(dst []byte, c index.Change) ([]byte, error) {
		e, err := st.engine.Log.ReadAt(ctx, c.Version)
		if err != nil {
			return nil, err
		}
		return engine.FinishedLine(dst, &e)
	}}
	if st.engine.Rotten.Swap(false) && st.engine.Settings.Now().MayRepair() {
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
	began := st.engine.Env.Clock()
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
		st.engine.Env.Logger.Warn("the old index could not be kept as a backup", "err", w.BackupErr)
		st.engine.Env.Event(env.Event{Kind: env.EventBackupFail, Err: w.BackupErr})
	}
	if errors.Is(err, errs.ErrCorrupt) && st.engine.Settings.Now().MayRepair() {
		st.engine.Env.Event(env.Event{Kind: env.EventCorruption, Path: index.BaseName, Err: err})
		if err := files.wait(); err != nil {
			return err
		}
		return st.reindex(ctx, to, list, err)
	}
	if err != nil {
		return fmt.Errorf("writing the index: %w", st.engine.Env.IOError("writing", filepath.Join(st.engine.Env.Dir, index.BaseName), err))
	}
	st.engine.Env.Event(env.Event{Kind: env.EventIndex, Path: w.Name, LSN: w.LSN, Bytes: w.Size, Count: len(list), Took: st.engine.Env.Clock().Sub(began)})
	return nil
}

// backupDue has the old base kept if the interval is over.
func (st *Store) backupDue(to *index.Target) {
	c := st.engine.Settings.Now()
	keep, every := c.Backups(), c.BackupEvery()
	if keep == 0 || st.engine.Log.Overwrites() { // it would have lines of what is purged, and make an older one go
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
	list, err := index.Backups(st.engine.Env.FS, st.engine.Env.Dir)
	if err != nil || len(list) == 0 {
		return time.Time{}
	}
	info, err := st.engine.Env.FS.Stat(filepath.Join(st.engine.Env.Dir, filepath.FromSlash(list[0].Name)))
	if err != nil {
		return time.Time{}
	}
	return info.Mtime
}
