package rebuild

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/view/vectors"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/wal/past"
)

// From builds a new base of the index when the present index cannot be trusted. It looks for the newest older index
// that is valid and belongs to this log. If there is one, From adds the entries that the log and the archive have since
// then, which keeps every version. Otherwise it uses the document files, which have all documents below r.At but no
// versions. from is the name of the older index, "" if the files were used; n is the number of memories.
func (mk *Maker) From(ctx context.Context, r Want, past *past.Log) (set *index.Set, from string, n int, err error) {
	older, err := mk.olderIndexes()
	if err != nil {
		return nil, "", 0, err
	}
	for _, name := range older {
		set, err := mk.fallBack(ctx, name, r, past)
		if err == nil {
			return set, name, int(set.Count(index.Memories)), nil
		}
		if ctx.Err() != nil {
			return nil, "", 0, ctx.Err()
		}
		if errors.Is(err, errs.ErrDiskFull) || errors.Is(err, errs.ErrPermission) || starved(err) {
			return nil, "", 0, err // the files are no better, and have no versions
		}
		mk.engine.Env().Logger.Info("an older index is unusable", "name", name, "why", err)
	}
	if r.model, err = mk.pastModel(ctx, r.At, past); err != nil {
		return nil, "", 0, err
	}
	if r.restored = mk.restored; r.restored != nil {
		r.model = r.restored.Model
		if err := mk.engine.RestoreWriters(r.Store, r.restored.Writers); err != nil {
			return nil, "", 0, err
		}
		if err := mk.engine.RestorePurges(r.restored.Purges); err != nil {
			return nil, "", 0, err
		}
	}
	if _,
		serr := mk.engine.Env().FS.Stat(mk.vectors.ComputedPath(vectors.ComputedName)); serr == nil && r.restored == nil &&
		r.model.LSN == 0 && mk.engine.State().Model().LSN == 0 {
		mk.engine.NoteProblem(fmt.Errorf("%s/%s: a re-embedding was under way, and the log and the index, which had its "+
			"progress, are gone: two models may have made the embeddings: run memctl reindex to continue the "+
			"re-embedding",
			vectors.VectorFolder, vectors.ComputedName))
	}
	set, n, err = mk.rebuildIndex(ctx, r)
	return set, "", n, err
}

// pastModel returns the last embedding model that the log and the archive record below a position. It returns the zero
// Model if they record no model, or if they can no longer be read up to that position.
func (mk *Maker) pastModel(ctx context.Context, to wal.Mark, past *past.Log) (model index.Model, err error) {
	if past == nil {
		return model, nil
	}
	from, err := past.First(to.LSN)
	if starved(err) {
		return model, err
	}
	if err != nil || from >= to.LSN {
		return model, nil
	}
	whole := true
	for e, err := range past.Entries(ctx, wal.Mark{LSN: from}, to.LSN) {
		switch {
		case ctx.Err() != nil:
			return index.Model{}, ctx.Err()
		case starved(err):
			return index.Model{}, err
		case err == nil && e.Kind != record.KindModel:
			continue
		case err == nil:
			var m index.Model
			if m, err = state.ModelIn(&e); err == nil {
				model = m
			}
		}
		whole = whole && err == nil
	}
	// The unreadable part may have the end of the switch: if the file of computed vectors is gone, it has ended.
	if _,
		err := mk.engine.Env().FS.Stat(mk.vectors.ComputedPath(vectors.ComputedName)); !whole && model.Switching() &&
		err != nil {
		return index.Model{}, nil
	}
	return model, nil
}

// starved reports whether an error means that this process lacks a resource at the moment. A file that could not be
// read for this reason may be undamaged.
func starved(err error) bool {
	return vfs.IsStarved(err)
}

// olderIndexes returns the names of the index files from which an index may be built: the base, which may be valid if
// the delta is damaged, and the backups, the newest first.
func (mk *Maker) olderIndexes() ([]string, error) {
	list, err := index.Backups(mk.engine.Env().FS, mk.engine.Env().Dir)
	if err != nil {
		return nil, mk.engine.Env().IOError("reading", filepath.Join(mk.engine.Env().Dir, index.BackupsDir), err)
	}
	names := []string{index.BaseName}
	for _, b := range list {
		names = append(names, b.Name)
	}
	return names, nil
}

func (mk *Maker) openOlder(name, store string) (*index.Set, error) {
	if name == index.BaseName {
		return index.OpenBase(mk.engine.Env().FS, mk.engine.Env().Dir, store)
	}
	list, err := index.Backups(mk.engine.Env().FS, mk.engine.Env().Dir)
	if err != nil {
		return nil, err
	}
	for _, b := range list {
		if b.Name == name {
			return index.OpenBackup(mk.engine.Env().FS, mk.engine.Env().Dir, b, store)
		}
	}
	return nil, fmt.Errorf("%s: %w", name, errs.ErrNotFound)
}

// fallBack brings an older index up to r.At with the log entries since then. It returns an error if the older index
// has an invalid byte, if the chain hash in that index differs from the log's at the position where the index ends, or
// if a log entry since then is missing.
func (mk *Maker) fallBack(ctx context.Context, name string, r Want, past *past.Log) (*index.Set, error) {
	old, err := mk.openOlder(name, r.Store.String())
	if err != nil {
		return nil, err
	}
	defer old.Release()
	for err := range index.Verify(old) {
		return nil, err
	}
	if old.LSN() > r.At.LSN {
		return nil, fmt.Errorf("the older index covers the log up to position %d, but the new index must end before "+
			"that, at position %d", old.LSN(), r.At.LSN)
	}
	sum, ok := index.Chain(old)
	if !ok {
		return nil, errors.New("the index does not record the chain hash of its log")
	}
	mark, err := past.Chain(ctx, old.LSN())
	if err != nil {
		return nil, fmt.Errorf("the log cannot be read at position %d, where the older index ends: %w", old.LSN(), err)
	}
	if mark.Sum != sum {
		return nil, fmt.Errorf("%w: the log differs from the log of the index before position %d",
			engine.ErrDistrusted, old.LSN())
	}
	target := mk.engine.Target(r.Store, r.At)
	if m := index.ModelOf(old); m.LSN > target.Model.LSN { // the engine does not know it while opening
		target.Model = m
	}
	changes, err := mk.changesSince(ctx, past, mark, r.At.LSN, &target.Model)
	if err != nil {
		return nil, fmt.Errorf("the log cannot be read from position %d on: %w", old.LSN(), err)
	}
	if _, err := index.WriteBase(old, target, *changes); err != nil {
		return nil, mk.engine.Env().IOError("writing", filepath.Join(mk.engine.Env().Dir, index.BaseName), err)
	}
	return index.Load(mk.engine.Env().FS, mk.engine.Env().Dir, index.Want{Store: r.Store.String(), Spilled: r.At.LSN}, nil)
}

// changesSince returns the changes that log and archive record in [from, to): the newest entry of each key. If an
// entry sets the embedding model and is newer than *model, changesSince stores that model in *model.
func (mk *Maker) changesSince(ctx context.Context, past *past.Log, from wal.Mark, to wal.LSN,
	model *index.Model) (*index.Changes, error) {
	place := map[string]int{}
	lines := map[wal.LSN][]byte{}
	ch := &index.Changes{Line: func(dst []byte, c index.Change) ([]byte, error) {
		return append(dst, lines[c.Version]...), nil
	}}
	for e, err := range past.Entries(ctx, from, to) {
		if err == nil {
			if _, err = state.Check(&e); errors.Is(err, state.ErrEntry) {
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		if e.Kind == record.KindModel && e.LSN > model.LSN {
			if *model, err = state.ModelIn(&e); err != nil {
				return nil, fmt.Errorf("entry %d: %w", e.LSN, err)
			}
			continue
		}
		c, ok, err := mk.engine.IndexChange(&e)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if !e.Delete {
			if lines[e.LSN], err = engine.FinishedLine(nil, &e); err != nil {
				return nil, err
			}
		}
		i, ok := place[e.Key]
		if !ok {
			place[e.Key] = len(ch.List)
			ch.List = append(ch.List, c)
			continue
		}
		delete(lines, ch.List[i].Version)
		ch.List[i] = c
	}
	return ch, nil
}
