package varve

import (
	"context"
	"fmt"

	"github.com/varve-db/varve/wal"
)

// Put stores a memory and returns it as stored, with its id, times and Version.
// When it returns nil the memory survives a crash of the process, of the system
// and of the power. A memory of this id is replaced: created_at and the members
// that Memory has no fields for are kept, and so is everything that a Memory
// that was read before and changed leaves as it was.
func (st *Store) Put(ctx context.Context, m Memory, conds ...Cond) (Memory, error) {
	if err := st.begun(); err != nil {
		return Memory{}, err
	}
	defer st.ended()
	if err := st.writable(); err != nil {
		return Memory{}, err
	}
	ops := []op{{id: m.ID, memory: &m, conds: conditionsOf(conds)}}
	if err := st.commit(ctx, ops, nil, 0); err != nil {
		return Memory{}, err
	}
	return *m.Clone(), nil
}

// Delete deletes a memory; ErrNotFound if there is none.
func (st *Store) Delete(ctx context.Context, id string, conds ...Cond) error {
	if err := st.begun(); err != nil {
		return err
	}
	defer st.ended()
	if err := st.writable(); err != nil {
		return err
	}
	return st.commit(ctx, []op{{id: id, conds: conditionsOf(conds), must: true}}, nil, 0)
}

// Batch is a list of operations that are written as a whole or not at all.
type Batch struct{ ops []op }

// NewBatch makes an empty batch. It is limited to half a segment of the log
// (ErrBatchTooLarge); PutAll takes more.
func (st *Store) NewBatch() *Batch { return &Batch{} }

// Put adds a memory.
func (b *Batch) Put(m Memory, conds ...Cond) {
	m = *m.Clone()
	b.ops = append(b.ops, op{id: m.ID, memory: &m, conds: conditionsOf(conds)})
}

// Delete adds a deletion. What is not there stays not there.
func (b *Batch) Delete(id string, conds ...Cond) {
	b.ops = append(b.ops, op{id: id, conds: conditionsOf(conds)})
}

// Len is the number of operations.
func (b *Batch) Len() int { return len(b.ops) }

// Apply writes the batch as one commit. An error that is about one operation is
// a *BatchError with its index; then nothing was written. A batch may be
// applied again after an error.
func (st *Store) Apply(ctx context.Context, b *Batch) error {
	if err := st.begun(); err != nil {
		return err
	}
	defer st.ended()
	if err := st.writable(); err != nil {
		return err
	}
	return st.commit(ctx, append([]op(nil), b.ops...), nil, 0)
}

// Pending is a Put on its way.
type Pending struct {
	memory Memory
	wait   *wal.Pending
	err    error
	done   chan struct{}
}

// Wait returns what Put would have. When ctx ends first the outcome is
// unknown: ErrOutcomeUnknown.
func (p *Pending) Wait(ctx context.Context) (Memory, error) {
	select {
	case <-p.done:
	default:
		select {
		case <-p.done:
		case <-ctx.Done():
			return Memory{}, fmt.Errorf("%w: %w", ErrOutcomeUnknown, ctx.Err())
		}
	}
	return p.memory, p.err
}

// PutAsync starts a Put and returns at once, or when less than 64 MiB are
// waiting. The memory is invisible until it is durable. Puts of different ids
// may become durable in any order; Close waits for them.
func (st *Store) PutAsync(m Memory, conds ...Cond) *Pending {
	p := &Pending{done: make(chan struct{})}
	if err := st.begun(); err != nil {
		p.err = err
		close(p.done)
		return p
	}
	size := int64(len(m.Content)) + 16*int64(len(m.Embedding)) + 1024
	run := func() {
		defer st.ended()
		defer close(p.done)
		p.memory, p.err = st.Put(context.Background(), m, conds...)
	}
	if st.o.System.Inline {
		run()
		return p
	}
	m = *m.Clone()
	st.flusher.async.acquire(size)
	st.pending.Go(func() {
		defer st.flusher.async.release(size)
		run()
	})
	return p
}
