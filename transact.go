package varve

import (
	"context"
	"fmt"
	"iter"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/meter"
)

// Tx reads and writes several memories and assemblies in one commit. It is valid only inside the
// function of Transact, for one goroutine.
type Tx struct {
	tx  *commit.Tx
	ctx context.Context
	eng *engine.Engine
}

// Transact runs the function f, which reads and writes through tx, and then commits what f wrote. If anything that f
// read has changed by then, Transact does not commit, and runs f again. So f may have other effects only if they may
// be repeated. Two reads within one run may return the state of different moments; such a run is not committed. If a
// short function (20 ms) has failed to commit for 300 ms, all other writers wait during its next run; so f must not
// wait for another write. With InSession the transaction cannot read or write the memories of any other session.
func (st *Store) Transact(ctx context.Context, f func(tx *Tx) error, options ...SessionOption) error {
	return st.transactIn(ctx, sessionOf(options), func(tx *commit.Tx) error { return f(&Tx{tx, ctx, st.inner.Engine}) })
}

func (st *Store) transactIn(ctx context.Context, session *string, f func(tx *commit.Tx) error) error {
	if err := st.inner.Engine.BeginUse(); err != nil {
		return err
	}
	defer st.inner.Engine.EndUse()
	if err := st.inner.Engine.Writable(); err != nil {
		return err
	}
	meters := st.inner.Engine.Env().Meters
	began := meters.Begin(meter.Transact)
	err := st.inner.Embedding.Transact(ctx, session, f)
	meters.End(meter.Transact, began, err != nil)
	return err
}

// Update changes one memory with the function f and returns the resulting memory. If another writer changes the memory
// meanwhile, f runs again. If the id is unknown, the error is ErrNotFound. If f returns ErrSkip, nothing is written. If
// another update of the memory is just being made durable, f already gets the updated version, which reads of the store
// do not return yet. Use Transact for a function that reads more than the memory.
func (st *Store) Update(ctx context.Context, id string, f func(m *Memory) error, options ...PutOption) (Memory, error) {
	var result Memory
	c := conditionsOf(options)
	err := st.transactIn(ctx, c.Session, func(tx *commit.Tx) error {
		m, err := commit.Latest(tx, id)
		if err != nil {
			return err
		}
		result = m
		if err := f(&m); err != nil {
			return err
		}
		if m.ID != id {
			return &errs.FieldError{Field: "id", Value: human.Quote(m.ID),
				Err: fmt.Errorf("%w: Update cannot change the id of memory %s", errs.ErrInvalid, human.Quote(id))}
		}
		result = m
		tx.PutAt(&result, c)
		return nil
	})
	if err != nil {
		return Memory{}, err
	}
	return *result.Clone(), nil
}

// Get returns a memory, including one that the transaction has written.
func (tx *Tx) Get(id string) (Memory, error) { return tx.tx.Get(id) }

// Assembly returns an assembly, including one that the transaction has written. An assembly that the transaction has
// written is returned as it was passed to PutAssembly, without the members that the commit computes.
func (tx *Tx) Assembly(id string) (Assembly, error) { return tx.tx.Assembly(id) }

// Put writes a memory with the transaction, and returns it. An empty id is replaced by a new one.
func (tx *Tx) Put(m Memory, options ...PutOption) (Memory, error) {
	return tx.tx.Put(m, conditionsOf(options))
}

// Delete deletes a memory. If the id is unknown, the error is ErrNotFound.
func (tx *Tx) Delete(id string, conds ...Cond) error { return tx.tx.Delete(id, conditionsOf(conds)) }

// DeleteAll deletes those of the given memories that exist. It does not read them first, and so is much faster than
// Delete for many memories.
func (tx *Tx) DeleteAll(ids ...string) { tx.tx.DeleteAll(ids...) }

// PutAssembly writes an assembly with the transaction, and returns it. An empty id is replaced by a new one. Its
// members may be memories that the transaction has put. If the transaction deletes a member afterwards, that member is
// removed from the assembly.
func (tx *Tx) PutAssembly(a Assembly, options ...PutOption) (Assembly, error) {
	return tx.tx.PutAssembly(a, conditionsOf(options))
}

// DeleteAssembly deletes an assembly, not its members. If the id is unknown, the error is ErrNotFound.
func (tx *Tx) DeleteAssembly(id string) error { return tx.tx.DeleteAssembly(id) }

// List yields the memories that pass the filters, in the order of their ids, without those that the transaction itself
// has written. If any process commits anything between the call of List and the transaction's own commit, the
// transaction's function runs again: use List only if there are few writers.
func (tx *Tx) List(filters ...Filter) iter.Seq2[Memory, error] {
	return func(yield func(Memory, error) bool) { tx.tx.List(filtersOf(tx.ctx, tx.eng, filters))(yield) }
}

// Alone lets the transaction commit only if no process commits anything between this call and the transaction's own
// commit; otherwise the function runs again. It is for callers whose decision depends on data that they derive from the
// store (see Admin.Changes) and not on what tx reads. With many concurrent writers the function may run many times.
func (tx *Tx) Alone() error { return tx.tx.Exclusive() }

// AloneAmong is like Alone, but only for the memories for which matches returns true: if one of them is put between
// this call and the commit, even without a change, the transaction's function runs again. It is for callers whose
// decision depends on all memories of some kind.
//
// matches gets the id and the document of a memory. If the document is not available, doc is nil, and matches must
// return true if the memory might match. matches is called by several goroutines at once, while the log is locked: it
// must be quick, must not keep a part of doc, and must not use the store. When the transaction's function runs again,
// it must call AloneAmong for the same memories.
//
// After several runs, all other writers in every process wait until the transaction has ended. So the transaction ends,
// no matter how much they write. From then on, the function must not wait for another write to the store: the
// transaction and that write would wait for each other until the write fails with ErrLocked.
func (tx *Tx) AloneAmong(matches func(id string, doc []byte) bool) error {
	return tx.tx.ExclusiveAmong(matches)
}
