package varve

import (
	"context"
	"path"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/flush"
	"github.com/varve-db/varve/vector"
	"github.com/varve-db/varve/wal"
)

// What repair has rebuilt of the derived files.

func (r repairStore) RebuildVectors(ctx context.Context) error {
	return r.st.rebuildVectors(ctx, flush.ErrFound)
}

func (r repairStore) RebuildView(ctx context.Context, folder string) error {
	held, err := r.st.inner.Engine.Log().LockFlush(ctx)
	if err != nil {
		return err
	}
	defer held.Unlock()
	if err := r.st.inner.Engine.CatchUp(ctx); err != nil {
		return err
	}
	return r.st.inner.Views.Rebuild(ctx, held, path.Base(folder))
}

// rebuildVectors rebuilds all vectors, whatever the current ones say of themselves; these stay until the
// new ones are complete.
func (st *Store) rebuildVectors(ctx context.Context, why error) error {
	return st.inner.Vectors.CompleteBy(ctx,
		func(held *wal.Held, idx *index.Set, to wal.Mark, list []index.Change) (wal.LSN, error) {
			set := vector.Empty()
			defer func() { _ = set.Release() }()
			at, _, err := st.inner.Vectors.WriteOver(ctx, held, set, why, idx, to, list, true)
			if err == nil && at == 0 {
				err = vector.Remove(st.inner.Engine.Env().FS, st.inner.Engine.Env().Dir) // no document has an embedding
			}
			if err == nil {
				st.inner.Vectors.Damaged().Store(false)
			}
			return at, err
		})
}

func (r repairStore) RebuildAssembly(ctx context.Context, held *wal.Held, id string, was wal.LSN,
	out []string) (wal.LSN, error) {
	st := r.st
	j := st.inner.Committer.Joint(ctx)
	j.Load = st.inner.Engine.Settled
	old, a, err := j.Assembly(id)
	if err != nil {
		return 0, err
	}
	if old.LSN != was {
		return 0, &errs.ConflictError{ID: id, Expected: was, Found: old.LSN, Remedy: "run memctl repair again"}
	}
	before := a.Clone()
	if a.Remove(out...) == 0 {
		before = nil // all of it counts again
	}
	if err := j.Compose(a, before); err != nil {
		return 0, err
	}
	entry, err := j.Entry(a, &old, old.LSN)
	if err != nil {
		return 0, err
	}
	b := &wal.Batch{Entries: []wal.Entry{entry}, Preconditions: []wal.Precondition{{Key: entry.Key, LSN: was}}}
	b.Preconditions = append(b.Preconditions, j.Modelled())
	for _, m := range out {
		b.Preconditions = append(b.Preconditions, wal.Precondition{Key: engine.MemoryKey(m)}) // still not there
	}
	if _, err := st.inner.Engine.Append(held.In(ctx), b); err != nil {
		return 0, err
	}
	st.inner.Flusher.Wake(len(b.Entries))
	return b.Entries[0].LSN, nil
}
