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

// ReindexNow makes the index again; why says what is not believed of it.
func (fl *Flusher) ReindexNow(ctx context.Context, why error) error {
	held, err := fl.engine.Log().LockFlush(ctx)
	if err != nil {
		return err
	}
	defer held.Unlock()
	return fl.reindexRound(ctx, held, why)
}

// reindexRound is a round whose index is rebuilt, once the files hold all that the log has. One that
// fails is repeated as a whole by the next round: what it was putting into files is not known to be
// there.
func (fl *Flusher) reindexRound(ctx context.Context, held *wal.Held, why error) error {
	ctx = held.In(ctx)
	err := fl.reindexAll(ctx, held, why)
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

func (fl *Flusher) reindexAll(ctx context.Context, held *wal.Held, why error) error {
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
	if err := files.end(files.put(ctx, nil, overtaken)); err != nil { // working memory has no other place below to
		return err
	}
	if err := fl.keepIndex(set); err != nil {
		return err
	}
	if err := fl.rebuilder.Again(ctx, held, to, recent, why, errors.Is(why, ErrAsked)); err != nil {
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

// Why an index is rebuilt, apart from damage that was met.
var (
	ErrAsked = errors.New("it was asked for")
	ErrFound = errors.New("repair found it damaged")
	ErrWrong = fmt.Errorf("repair found it wrong: %w", ErrAsked)
)

// keepIndex gives a sound base a second name in backups/.
func (fl *Flusher) keepIndex(set *index.Set) error {
	if set.Base() == nil {
		return nil
	}
	for range set.Base().Check() {
		return nil // damaged: nothing to fall back on
	}
	folder := filepath.Join(fl.engine.Env().Dir, index.BackupsDir)
	name := filepath.Join(folder, fmt.Sprintf("memory_index.%d.json", set.Base().Meta().LSN))
	err := fl.engine.Env().FS.Link(filepath.Join(fl.engine.Env().Dir, index.BaseName), name)
	if errors.Is(err, fs.ErrExist) || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrNotExist) {
		return nil // there already; or not there any more
	}
	if err != nil {
		return fl.engine.Env().IOError("keeping", name, err)
	}
	return fl.engine.Env().FS.SyncDir(folder)
}
