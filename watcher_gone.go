package varve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/wal"
)

// Gone are those of the absent names of a folder that should be there: by our own
// doing they are not gone. It gives the ids.
func (f *Files) Gone(ctx context.Context, folder string, absent []string) (ids []string, err error) {
	k, st := f.folder(folder), f.st
	if k == nil || len(absent) == 0 {
		return nil, nil
	}
	if err := st.log.CatchUp(ctx); err != nil {
		return nil, err
	}
	var hashed []string // names that do not say their id
	for _, name := range absent {
		id := strings.TrimSuffix(name, docfile.Extension)
		switch {
		case docfile.FileName(id) != name:
			hashed = append(hashed, name)
		case st.reallyMissing(ctx, k, id, name):
			ids = append(ids, id)
		}
	}
	if len(hashed) > 0 {
		slices.Sort(hashed)
		for id, err := range st.ids(ctx, k, filters{expired: true}) {
			if err != nil {
				return nil, err
			}
			name := docfile.FileName(id)
			if _, ok := slices.BinarySearch(hashed, name); ok && st.reallyMissing(ctx, k, id, name) {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), ctx.Err()
}

// A folder that is emptied is an accident: when at least this many files, and more than
// half of all, are gone at once, none was deleted.
const massDeletion = 5

// Settle decides about files that stay gone. config.json has adopt_deletions: then what
// somebody deletes is deleted, and its versions stay in the history as those of
// every deletion do. Else, or when most of a folder is gone, the files are put back that
// log and archive still have, and the others are reported.
func (f *Files) Settle(ctx context.Context, folder string, ids []string) error {
	k, st := f.folder(folder), f.st
	if k == nil || len(ids) == 0 {
		return nil
	}
	st.rereadConfig()
	st.config.mu.Lock()
	adopt := st.config.c.adoptDeletions()
	st.config.mu.Unlock()
	all := st.state.Live(k.letter)
	switch err := k.Check(); {
	case errors.Is(err, fs.ErrNotExist):
		adopt = false
		if err := k.Make(); err != nil {
			return err
		}
		st.event(Event{Kind: EventDrift, Path: k.Name(), Err: err, Count: len(ids), Note: "the folder was gone; it is made again"})
	case err != nil:
		return err
	case adopt && len(ids) >= massDeletion && int64(2*len(ids)) > all:
		adopt = false
		st.event(Event{Kind: EventDrift, Path: k.Name(), Count: len(ids),
			Note: fmt.Sprintf("%d of %d files are gone at once; that is not taken for their deletion: memctl rm deletes", len(ids), all)})
	}
	deleted := 0
	for _, id := range ids {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var err error
		if adopt {
			err = st.deletedByHand(ctx, k, id)
			deleted++
		} else {
			err = st.putMissingBack(ctx, k, id)
		}
		if errors.Is(err, ErrClosed) || errors.Is(err, ErrReadOnly) {
			return err
		}
		if err != nil && ctx.Err() == nil {
			st.o.Logger.Warn("a file is gone", "path", k.file(id), "err", err)
			st.event(Event{Kind: EventDrift, ID: id, Path: k.file(id), Err: err})
		}
	}
	if deleted == 0 {
		return nil
	}
	return st.flush(context.WithoutCancel(ctx), mergeWhenDue)
}

// deletedByHand deletes the document whose file somebody has deleted.
func (st *Store) deletedByHand(ctx context.Context, k *kind, id string) error {
	if err := st.log.LockFlush(ctx); err != nil {
		return err
	}
	defer st.log.UnlockFlush()
	v, gone, err := st.stillGone(ctx, k, id)
	if !gone {
		return err
	}
	b, err := st.deletion(ctx, k, id, v.lsn)
	if err != nil {
		return err
	}
	if _, err := st.log.Append(ctx, b); err != nil {
		if errors.Is(err, ErrConflict) {
			return nil
		}
		return err
	}
	st.flusher.changed(st, len(b.Entries))
	st.health.edit()
	st.event(Event{Kind: EventDeleted, ID: id, LSN: b.Entries[0].LSN, Path: k.file(id)})
	return nil
}

// stillGone says whether the file of a document's newest version is gone. flush.lock
// is held.
func (st *Store) stillGone(ctx context.Context, k *kind, id string) (v version, gone bool, err error) {
	if err := st.sight(ctx); err != nil {
		return v, false, err
	}
	v, flushed, err := st.newestOf(ctx, k, id)
	if err != nil || !flushed {
		return v, false, ignoreNotFound(err) // written again meanwhile, or deleted
	}
	if _, err := k.Stat(docfile.FileName(id)); !errors.Is(err, fs.ErrNotExist) {
		return v, false, err
	}
	return v, true, nil
}

// deletion is the commit that deletes a version of a document.
func (st *Store) deletion(ctx context.Context, k *kind, id string, was wal.LSN) (*wal.Batch, error) {
	value, _ := st.codec.Encode(nil, &record.Record{Previous: was})
	b := &wal.Batch{
		Entries:       []wal.Entry{{Key: k.key(id), Kind: record.KindDelete, Delete: true, Value: value}},
		Preconditions: []wal.Precondition{{Key: k.key(id), LSN: was}},
	}
	if k == st.memories {
		return b, st.goesAlong(ctx, id, memoryChange{deleted: true}, b)
	}
	return b, nil
}

// putMissingBack puts the newest version into its file again.
func (st *Store) putMissingBack(ctx context.Context, k *kind, id string) error {
	if err := st.log.LockFlush(ctx); err != nil {
		return err
	}
	defer st.log.UnlockFlush()
	v, gone, err := st.stillGone(ctx, k, id)
	if !gone {
		return err
	}
	kept, ok := st.fromLog(ctx, k, id, v.lsn)
	if !ok {
		return &CorruptionError{Path: k.file(id), Offset: -1, LSN: v.lsn, Err: errors.New("it is gone, and the log no longer has it: run memctl verify")}
	}
	if err := st.putBack(ctx, k, id, kept); err != nil {
		return err
	}
	st.event(Event{Kind: EventRestored, ID: id, Path: k.file(id), LSN: v.lsn})
	return nil
}

func ignoreNotFound(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
