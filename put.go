package varve

import (
	"context"

	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/meter"
)

// Put stores a memory and returns it as stored, with its id, times and Version. When Put returns nil, the memory
// survives a crash of the process and of the system, and a power failure. If a memory with this id exists, Put replaces
// it, but keeps its created_at and the members for which Memory has no field. If m was read before and then modified,
// everything that was not modified stays the same. Content may be empty: an imported memory, or one that has only an
// embedding or metadata, is valid.
func (st *Store) Put(ctx context.Context, m Memory, options ...PutOption) (Memory, error) {
	if err := st.inner.Engine.BeginUse(); err != nil {
		return Memory{}, err
	}
	defer st.inner.Engine.EndUse()
	return st.put(ctx, m, options)
}

func (st *Store) put(ctx context.Context, m Memory, options []PutOption) (Memory, error) {
	if err := st.inner.Engine.Writable(); err != nil {
		return Memory{}, err
	}
	meters := st.inner.Engine.Env().Meters
	began := meters.Begin(meter.Put)
	ops := []commit.Op{{ID: m.ID, Memory: &m, Conds: conditionsOf(options)}}
	err := st.inner.Embedding.Commit(ctx, ops, nil, 0, nil)
	meters.End(meter.Put, began, err != nil)
	if err != nil {
		return Memory{}, err
	}
	return *m.Clone(), nil
}

// Delete deletes a memory. If the id is unknown, the error is ErrNotFound.
func (st *Store) Delete(ctx context.Context, id string, conds ...Cond) error {
	if err := st.inner.Engine.BeginUse(); err != nil {
		return err
	}
	defer st.inner.Engine.EndUse()
	if err := st.inner.Engine.Writable(); err != nil {
		return err
	}
	meters := st.inner.Engine.Env().Meters
	began := meters.Begin(meter.Delete)
	err := st.inner.Committer.Commit(ctx, []commit.Op{{ID: id, Conds: conditionsOf(conds), MustExist: true}}, nil, 0)
	meters.End(meter.Delete, began, err != nil)
	return err
}

// Batch is a list of operations that Store.Apply writes completely or not at all. The zero
// Batch is empty and ready for use. A batch takes at most half a segment of the log
// (ErrBatchTooLarge); PutAll takes more.
type Batch struct{ ops []commit.Op }

// Put adds to the batch the operation that puts a memory.
func (b *Batch) Put(m Memory, options ...PutOption) {
	m = *m.Clone()
	b.ops = append(b.ops, commit.Op{ID: m.ID, Memory: &m, Conds: conditionsOf(options)})
}

// Delete adds the deletion of a memory to the batch. Deleting a missing id is a no-op.
func (b *Batch) Delete(id string, conds ...Cond) {
	b.ops = append(b.ops, commit.Op{ID: id, Conds: conditionsOf(conds)})
}

// PutAssembly adds a put of an assembly to the batch. Its members may be memories that the same batch puts. If the
// batch deletes a member afterwards, that member is removed from the assembly.
func (b *Batch) PutAssembly(a Assembly, options ...PutOption) {
	b.ops = append(b.ops, commit.Op{Group: true, ID: a.ID, Assembly: a.Clone(), Conds: conditionsOf(options)})
}

// DeleteAssembly adds the deletion of an assembly to the batch. Deleting a missing id is a no-op.
func (b *Batch) DeleteAssembly(id string, conds ...Cond) {
	b.ops = append(b.ops, commit.Op{Group: true, ID: id, Conds: conditionsOf(conds)})
}

// Len returns the number of operations.
func (b *Batch) Len() int { return len(b.ops) }

// Apply writes the batch as one commit. If one operation fails, the error is a *BatchError with the index of that
// operation, and nothing was written. A batch may be applied again after an error.
func (st *Store) Apply(ctx context.Context, b *Batch, options ...SessionOption) error {
	if err := st.inner.Engine.BeginUse(); err != nil {
		return err
	}
	defer st.inner.Engine.EndUse()
	if err := st.inner.Engine.Writable(); err != nil {
		return err
	}
	meters := st.inner.Engine.Env().Meters
	began := meters.Begin(meter.Apply)
	ops := append([]commit.Op(nil), b.ops...)
	commit.Confine(ops, sessionOf(options))
	err := st.inner.Embedding.Commit(ctx, ops, nil, 0, nil)
	meters.End(meter.Apply, began, err != nil)
	return err
}
