package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/adopt"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/flush"
	"github.com/varve-db/varve/internal/repairs/heal"
	"github.com/varve-db/varve/internal/view"
	"github.com/varve-db/varve/vector"
	"github.com/varve-db/varve/wal"
)

// repairing implements heal.Store for an open store: package internal/repairs/heal changes the store through it.
type repairing struct{ st *Store }

// Repairing returns the store as a heal.Store, through which repairs change it. Closing the heal.Store closes the
// store.
func (st *Store) Repairing() heal.Store { return repairing{st} }

func (r repairing) Source() view.Source { return r.st.Source() }

func (r repairing) Close() error {
	return r.st.Close(context.Background(), r.st.Engine.Env().LockWait)
}

func (r repairing) PutBack(ctx context.Context, held *wal.Held, letter byte, id string, version wal.LSN,
	mtime time.Time, doc []byte) error {
	k, err := r.st.Engine.Kinds().Named(letter)
	if err != nil {
		return err
	}
	v := engine.Version{LSN: version, Doc: doc,
		Line: index.Entry{Mtime: mtime.UnixMicro(), Size: int64(len(doc)), Version: version,
			Dimension: index.UnknownDimension}}
	return r.st.Adopter.PutBack(ctx, held, k, id, v)
}

func (r repairing) Adopt(ctx context.Context, held *wal.Held, letter byte, id string, doc []byte,
	mtime time.Time, version wal.LSN) (wal.LSN, error) {
	k, err := r.st.Engine.Kinds().Named(letter)
	if err != nil {
		return 0, err
	}
	v, err := r.st.Adopter.AdoptOver(ctx, held, k, id, doc, mtime, version)
	return v.LSN, err
}

func (r repairing) AdoptNew(ctx context.Context, held *wal.Held, letter byte, list []*heal.Adoption) {
	st := r.st
	k, err := st.Engine.Kinds().Named(letter)
	if err != nil {
		for _, a := range list {
			a.Err = err
		}
		return
	}
	verdicts := make([]*adopt.Verdict, len(list))
	for i, a := range list {
		verdicts[i] = st.Adopter.Newcomer(ctx, k, a.Doc, "", a.ID, a.Mtime)
	}
	st.Adopter.AdoptAll(ctx, held, k, verdicts)
	for i, v := range verdicts {
		list[i].Version, list[i].Err = v.Version.LSN, v.Err
	}
}

func (r repairing) Judge(ctx context.Context, letter byte, list []*heal.Judgement) {
	st := r.st
	k, err := st.Engine.Kinds().Named(letter)
	if err != nil {
		for _, j := range list {
			j.Err = err
		}
		return
	}
	due := make([]adopt.Suspect, len(list))
	for i, j := range list {
		due[i] = adopt.Suspect{Name: k.FileName(j.ID), ID: j.ID,
			Adopted: func(a *adopt.Adoption) { j.Was, j.Version = a.Precondition.LSN, a.Entry.LSN }}
	}
	err = st.Adopter.JudgeAll(ctx, k, due)
	for _, j := range list {
		if j.Err = err; err == nil {
			_, j.Err = st.Engine.Find(ctx, k, j.ID, true)
		}
	}
}

func (r repairing) Delete(ctx context.Context, held *wal.Held, letter byte, id string, version wal.LSN) error {
	k, err := r.st.Engine.Kinds().Named(letter)
	if err != nil {
		return err
	}
	return r.st.Committer.CommitTogether(ctx, held, k, []*commit.Part{r.st.Adopter.DeletionPart(k, id, version)})
}

func (r repairing) Settle(ctx context.Context) error {
	st := r.st
	held, err := st.Engine.Log().LockFlush(ctx)
	if err != nil {
		return err
	}
	defer held.Unlock()
	if err := st.Flusher.EmptyTemp(ctx, held); err != nil {
		return err
	}
	return st.Flusher.FlushLocked(ctx, held, flush.MergeAlways)
}

func (r repairing) Reindex(ctx context.Context, wrong bool) error {
	if wrong {
		return r.st.Flusher.ReindexNow(ctx, flush.ErrWrong)
	}
	return r.st.Flusher.ReindexNow(ctx, flush.ErrFound)
}

func (r repairing) RebuildScope(ctx context.Context, file string) (string, error) {
	return r.st.Scopes.RebuildScope(ctx, file)
}

func (r repairing) RebuildVectors(ctx context.Context) error {
	return r.st.RebuildVectors(ctx)
}

func (r repairing) RebuildView(ctx context.Context, folder string) error {
	held, err := r.st.Engine.Log().LockFlush(ctx)
	if err != nil {
		return err
	}
	defer held.Unlock()
	if err := r.st.Engine.CatchUp(ctx); err != nil {
		return err
	}
	return r.st.Views.Rebuild(ctx, held, path.Base(folder))
}

func (r repairing) RebuildAssembly(ctx context.Context, held *wal.Held, id string, version wal.LSN,
	out []string) (wal.LSN, error) {
	st := r.st
	j := st.Committer.Joint(ctx)
	j.Load = st.Engine.Settled
	old, a, err := j.Assembly(id)
	if err != nil {
		return 0, err
	}
	if old.LSN != version {
		return 0, &errs.ConflictError{ID: id, Expected: version, Found: old.LSN, Remedy: "run memctl repair again"}
	}
	before := a.Clone()
	if a.Remove(out...) == 0 {
		before = nil // recompute from all members
	}
	if err := j.Compose(a, before); err != nil {
		return 0, err
	}
	entry, err := j.Entry(a, &old, old.LSN)
	if err != nil {
		return 0, err
	}
	b := &wal.Batch{Entries: []wal.Entry{entry}, Preconditions: []wal.Precondition{{Key: entry.Key, LSN: version}}}
	b.Preconditions = append(b.Preconditions, j.Modelled())
	for _, m := range out {
		b.Preconditions = append(b.Preconditions, wal.Precondition{Key: engine.MemoryKey(m)}) // still not there
	}
	if _, err := st.Engine.Append(held.In(ctx), b); err != nil {
		return 0, err
	}
	st.Flusher.Wake(len(b.Entries))
	return b.Entries[0].LSN, nil
}

// RebuildVectors writes the vector files from the documents, whatever the current files contain. The current files stay
// until the new ones are complete.
func (st *Store) RebuildVectors(ctx context.Context) error {
	return st.Vectors.CompleteBy(ctx,
		func(held *wal.Held, idx *index.Set, to wal.Mark, list []index.Change) (wal.LSN, error) {
			set := vector.Empty()
			defer func() { _ = set.Release() }()
			at, _, err := st.Vectors.WriteOver(ctx, held, set, flush.ErrFound, idx, to, list, true)
			if err == nil && at == 0 {
				err = vector.Remove(st.Engine.Env().FS, st.Engine.Env().Dir) // no document has an embedding
			}
			if err == nil {
				st.Vectors.Damaged().Store(false)
			}
			return at, err
		})
}

// RebuildIndex rebuilds the index from the log and the files, whatever the current index contains. Before that it
// flushes the store. If the flush succeeds, and a document folder has no documents although it should have some,
// RebuildIndex returns an *errs.CorruptionError and leaves the index unchanged.
func (st *Store) RebuildIndex(ctx context.Context) error {
	if st.FlushNow(ctx, flush.MergeFlush) == nil { // otherwise files may be missing for that
		if err := st.emptied(); err != nil {
			return err
		}
	}
	return st.Flusher.ReindexNow(ctx, flush.ErrAsked)
}

// emptied returns an *errs.CorruptionError if a document folder has no documents although the index or the log names
// some.
func (st *Store) emptied() error {
	for _, k := range st.Engine.Kinds().All {
		n := st.Engine.State().Live(k.Letter)
		if n == 0 {
			continue
		}
		names, err := k.Names()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return st.Engine.Env().IOError("reading", k.Path(""), err)
		}
		if !k.HasDocuments(names) {
			return &errs.CorruptionError{Path: k.Name(), Offset: -1,
				Err: fmt.Errorf("the folder is empty, but the index names %d %s: "+
					"restore the folder, or run memctl repair to restore what the log still has", n, k.Name())}
		}
	}
	return nil
}
