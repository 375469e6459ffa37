package adopt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/flush"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/wal"
)

// Gone takes names of absent files in a folder, and returns the ids of the documents among them whose file should exist
// because the store itself has not removed it.
func (f *Files) Gone(ctx context.Context, folder string, absent []string) (ids []string, err error) {
	k, ed := f.folder(folder), f.ed
	if k == nil || len(absent) == 0 {
		return nil, nil
	}
	if err := ed.engine.Log().Folder().InPlace(); err != nil { // as in Look
		return nil, err
	}
	if err := ed.engine.Log().CatchUp(ctx); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(absent, func(name string) bool { return ed.unflushed(ctx, k, name) }) {
		// The document may have been written to its file anyway; while a scope lags, its loss would not be noticed.
		if err := ed.flusher.FlushFiles(context.WithoutCancel(ctx), flush.MergeFiles); err != nil {
			return nil, err
		}
	}
	var hashed []string // names that do not contain their id
	for _, name := range absent {
		id, ok := k.ID(name)
		switch {
		case !ok:
			hashed = append(hashed, name)
		case ed.ReallyMissing(ctx, k, id, name):
			ids = append(ids, id)
		}
	}
	if len(hashed) > 0 {
		slices.Sort(hashed)
		for id, err := range ed.engine.IDs(ctx, k, engine.Filters{Expired: true}) {
			if err != nil {
				return nil, err
			}
			name := k.FileName(id)
			if _, ok := slices.BinarySearch(hashed, name); ok && ed.ReallyMissing(ctx, k, id, name) {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), ctx.Err()
}

// unflushed reports whether the document of a file exists and its newest version is not flushed. For a name that does
// not contain the id, it reports whether the log has any entry that is not flushed.
func (ed *Adopter) unflushed(ctx context.Context, k *engine.Kind, name string) bool {
	id, ok := k.ID(name)
	if !ok {
		return ed.engine.Log().Flushed() < ed.engine.Log().Durable()
	}
	_, flushed, err := ed.newestOf(ctx, k, id)
	return err == nil && !flushed
}

// The loss of a folder's files is an accident, and none of them was deleted on purpose, if at least massDeletion files
// and more than half of all are missing at once, or if all of at least leastEmptied files are missing.
const (
	massDeletion = 5
	leastEmptied = 2
)

// accident reports whether the loss of files counts as an accident and not as a deletion. all is the number of
// files that the folder had, and missing is the number of files that are missing at the same time.
func accident(missing, all int64) bool {
	return missing >= massDeletion && 2*missing > all || missing >= leastEmptied && missing >= all
}

// errUndecided is the error for missing files while the setting that decides about them cannot be read.
var errUndecided = fmt.Errorf("%w: files are missing, and config.json, which decides whether they are restored or "+
	"count as deleted, is not valid → correct config.json",
	errs.ErrInvalid)

// Restore creates the folder of a kind again that was removed while it was empty. git stash -u removes empty folders,
// and the system sends no notifications about a folder that does not exist. Restore does nothing if the store has
// documents of the kind, or if config.json is missing too, as in a git branch that does not contain the store.
func (f *Files) Restore(ctx context.Context, folder string) error {
	k, ed := f.folder(folder), f.ed
	if k == nil {
		return nil
	}
	if err := k.Check(); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	ed.engine.Settings().Reread()
	if ed.engine.Settings().Gone() || ed.engine.State().Live(k.Letter) > 0 {
		return nil
	}
	if err := ed.engine.Log().Folder().InPlace(); err != nil {
		return err
	}
	return k.Make()
}

// Settle decides about the documents ids, whose files stay missing. If config.json has adopt_deletions, it deletes
// these documents; their versions stay in the history, as after any deletion. Otherwise Settle restores the files from
// the log, the archive or a file with another name that contains the document, and reports the files that it cannot
// restore.
//
// Even with adopt_deletions, Settle restores a file instead of deleting its document if such a file with another name
// exists, or if the loss counts as an accident: the folder itself is missing or, for a kind without FileWins, most
// files of the folder are missing at once.
func (f *Files) Settle(ctx context.Context, folder string, ids []string) error {
	return f.settle(ctx, folder, ids, false)
}

// settle does the same as Settle. unseen means that no process watched when the files were removed.
func (f *Files) settle(ctx context.Context, folder string, ids []string, unseen bool) error {
	k, ed := f.folder(folder), f.ed
	if k == nil {
		return nil
	}
	if len(ids) == 0 {
		return ed.restored(ctx, k, nil)
	}
	ed.engine.Settings().Reread()
	if ed.engine.Settings().Gone() {
		ed.engine.Env().Event(env.Event{Kind: env.EventDrift, Path: k.Name(), Count: len(ids),
			Note: "config.json is gone too, as in a git branch without the store: nothing is deleted or restored " +
				"until config.json is back"})
		return nil
	}
	if ed.engine.Settings().Unknown() {
		return errUndecided
	}
	adopt := ed.engine.Settings().Now().AdoptsDeletions()
	all := ed.engine.State().Live(k.Letter)
	switch err := k.Check(); {
	case errors.Is(err, fs.ErrNotExist):
		adopt = false
		if err := ed.remake(ctx, k); err != nil {
			return err
		}
		ed.engine.Env().Event(env.Event{Kind: env.EventDrift, Path: k.Name(), Err: err, Count: len(ids),
			Note: "the folder was missing and was created again"})
	case err != nil:
		return err
	case adopt && !k.FileWins && accident(int64(len(ids)), all):
		adopt = false
		if err := ed.record(ctx, k); err != nil { // once some files are back, the others would look like deleted ones
			return err
		}
		ed.engine.Env().Event(env.Event{Kind: env.EventDrift, Path: k.Name(), Count: len(ids),
			Note: fmt.Sprintf("%d of %d files are missing at once, which does not count as their deletion; to delete "+
				"memories: memctl rm",
				len(ids), all)})
	}
	strays, err := f.strays(ctx, k, ids)
	if err != nil {
		return err
	}
	changed := false
	if adopt {
		if ids, changed, err = f.moved(ctx, k, ids); err != nil {
			return err
		}
	}
	lost, err := ed.inLost(ctx, k, ids)
	if err != nil {
		return err
	}
	roots, err := ed.roots(k)
	if err != nil {
		return err
	}
	asked := make(map[string]bool, len(ids))
	for _, id := range ids {
		asked[id] = true
	}
	for _, id := range slices.Sorted(maps.Keys(lost)) {
		if !asked[id] {
			ids = append(ids, id)
		}
	}
	gone := map[string]bool{}
	for _, id := range ids {
		if k.Companion != nil {
			gone[id] = true
		}
	}
	beyond, failures := map[string]bool{}, &failures{}
	for len(ids) > 0 {
		n := min(len(ids), commit.PartsMost)
		s := &settling{ed: ed, ctx: ctx, k: k, adopt: adopt, unseen: unseen, strays: strays, gone: gone, lost: lost,
			roots: roots, beyond: beyond, failures: failures}
		if err := s.all(ids[:n]); err != nil {
			return err
		}
		changed, ids = changed || s.changed, ids[n:]
	}
	if failures.left > 0 {
		ed.engine.Env().Event(env.Event{Kind: env.EventDrift, Path: k.Name(), Count: failures.left, Err: failures.err,
			Note: "some missing files are not restored yet, because restoring others failed; the store tries again"})
	}
	if err := ed.restored(ctx, k, beyond); err != nil {
		return err
	}
	if !changed {
		return nil
	}
	return ed.flusher.FlushFiles(context.WithoutCancel(ctx), flush.MergeWhenDue)
}

// stillGone returns the newest version of a document, and reports in gone whether the file of that version is missing.
// If the version is not flushed yet, or the document does not exist, gone is false and err is nil.
func (ed *Adopter) stillGone(ctx context.Context, _ *wal.Held, k *engine.Kind,
	id string) (v engine.Version, gone bool, err error) {
	v, flushed, err := ed.newestOf(ctx, k, id)
	if err != nil || !flushed {
		return v, false, ignoreNotFound(err) // written again meanwhile, or deleted
	}
	if _, err := k.Stat(k.FileName(id)); !errors.Is(err, fs.ErrNotExist) {
		return v, false, err
	}
	return v, true, nil
}

// DeletionPart returns the Part that deletes a document, on the condition that its newest version is the one at
// position pos.
func (ed *Adopter) DeletionPart(k *engine.Kind, id string, pos wal.LSN) *commit.Part {
	value, _ := ed.engine.Codec().Encode(nil, &record.Record{Previous: pos})
	return &commit.Part{
		ID:           id,
		Entry:        wal.Entry{Key: k.Key(id), Kind: record.KindDelete, Delete: true, Value: value, Cause: wal.CauseEdited},
		Precondition: wal.Precondition{Key: k.Key(id), LSN: pos},
		Change:       commit.MemoryChange{Deleted: true},
	}
}

// versionFromLog returns the version of a document at position pos from the log or the archive. If neither has the
// version any more, or the version cannot be read, the error is a *errs.CorruptionError.
func (ed *Adopter) versionFromLog(ctx context.Context, k *engine.Kind, id string, pos wal.LSN) (engine.Version, error) {
	v, ok := ed.engine.FromLog(ctx, k, id, pos)
	if !ok {
		return v, &errs.CorruptionError{Path: k.File(id), Offset: -1, LSN: pos,
			Err: errBeyond}
	}
	return v, nil
}

func ignoreNotFound(err error) error {
	if errors.Is(err, errs.ErrNotFound) {
		return nil
	}
	return err
}
