package flush

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/wal"
)

// ReindexNow rebuilds the index. cause is the reason for the rebuild. It appears in messages, and determines from
// which source the index is rebuilt.
func (fl *Flusher) ReindexNow(ctx context.Context, cause error) error {
	held, err := fl.engine.Log().LockFlush(ctx)
	if err != nil {
		return err
	}
	defer held.Unlock()
	return fl.reindexRound(ctx, held, cause)
}

// reindexRound runs a round that rebuilds the index after the document files contain everything that the log has. If
// the round fails, the next round writes all these files again, because it is unknown which files the failed round has
// written.
func (fl *Flusher) reindexRound(ctx context.Context, held *wal.Held, cause error) error {
	ctx = held.In(ctx)
	err := fl.reindexAll(ctx, held, cause)
	fl.reached = 0
	if err != nil {
		fl.Lagging = lag{}
		fl.failed.Add(1)
		return err
	}
	fl.failed.Store(0)
	fl.judgeAside(ctx, held)
	return nil
}

func (fl *Flusher) reindexAll(ctx context.Context, held *wal.Held, cause error) error {
	if err := fl.engine.CatchUp(ctx); err != nil && !errors.Is(err, errs.ErrCorrupt) {
		return err
	}
	_ = fl.engine.KeepUp(held)
	c, err := fl.engine.Log().Checkpoint()
	if err != nil {
		return err
	}
	distrusted := fl.engine.Log().Notes().Distrusted()
	if distrusted {
		fl.files.Distrust()
	}
	list, to, err := fl.Due(ctx, MergeAlways, c)
	if err != nil {
		return err
	}
	files := fl.filing(ctx, max(c.Flushed.LSN, fl.Lagging.filed), distrusted)
	err = files.put(ctx, nil, list)
	if err == nil {
		_, err = files.hold(ctx, c, to, MergeAlways)
	}
	if err = files.end(err); err != nil {
		return err
	}
	set := fl.engine.State().Set()
	if set == nil {
		return errs.ErrClosed
	}
	defer set.Release()
	recent, overtaken, err := fl.engine.StateAt(ctx, set.LSN(), to.LSN)
	if err != nil {
		return err
	}
	if err := files.end(files.put(ctx, nil, overtaken)); err != nil { // older working memory is nowhere else
		return err
	}
	if err := fl.keepIndex(set); err != nil {
		return err
	}
	if err := fl.rebuilder.Again(ctx, held, to, recent, cause, errors.Is(cause, ErrAsked)); err != nil {
		return err
	}
	if err := fl.engine.Log().SetCheckpoint(held, to, to, fl.FolderTimes()); err != nil {
		return err
	}
	if distrusted {
		if err := fl.engine.Log().Notes().Trust(held); err != nil {
			return err
		}
	}
	fl.engine.Damaged().Store(false)
	if err := fl.mapIndex(held); err != nil {
		return err
	}
	fl.views.Round(ctx, held, true)
	return nil
}

// Reasons for rebuilding an index, apart from damage that was found.
var (
	ErrAsked = errors.New("a rebuild was requested")
	ErrFound = errors.New("repair found the index damaged")
	ErrWrong = fmt.Errorf("repair found wrong data in the index: %w", ErrAsked)
)

// keepIndex keeps the base of the index, if it is undamaged, as a backup: it gives the file a second name in backups/.
func (fl *Flusher) keepIndex(set *index.Set) error {
	if set.Base() == nil {
		return nil
	}
	for range set.Base().Check() {
		return nil // damaged: not worth keeping
	}
	folder := filepath.Join(fl.engine.Env().Dir, index.BackupsDir)
	name := filepath.Join(folder, fmt.Sprintf("memory_index.%d.json", set.Base().Meta().LSN))
	err := fl.engine.Env().FS.Link(filepath.Join(fl.engine.Env().Dir, index.BaseName), name)
	if errors.Is(err, fs.ErrExist) || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrNotExist) {
		return nil // it has the name already, or is gone
	}
	if err != nil {
		return fl.engine.Env().IOError("keeping", name, err)
	}
	return fl.engine.Env().FS.SyncDir(folder)
}
