package varve

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
)

// ErrSkip, returned by the function of Update or Transact, ends it without
// writing and without an error.
var ErrSkip = errors.New("skip")

// Tx reads several memories and assemblies and writes several, in one commit. It
// is used in the function of Transact only, by one goroutine.
type Tx struct {
	st      *Store
	ctx     context.Context
	session *string // that it is confined to
	seen    reads
	listed  wal.LSN
	ops     []op
	wrote   map[string]int // by key
}

// Transact runs a function that reads and writes through tx, and commits what
// it wrote if everything that it read is still so at that moment; otherwise the
// function runs again. It must not do anything else that cannot be repeated.
// Within one run, two reads may see different moments; a run that did is not
// committed. With InSession the transaction neither reads nor writes the memories of
// any other session.
func (st *Store) Transact(ctx context.Context, f func(tx *Tx) error, in ...SessionOption) error {
	return st.transactIn(ctx, sessionOf(in), f)
}

func (st *Store) transactIn(ctx context.Context, session *string, f func(tx *Tx) error) error {
	if err := st.engine.Begun(); err != nil {
		return err
	}
	defer st.engine.Ended()
	if err := st.engine.Writable(); err != nil {
		return err
	}
	return st.transact(ctx, session, f)
}

func (st *Store) transact(ctx context.Context, session *string, f func(tx *Tx) error) error {
	known := embedded{} // the function may run again with the same texts
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		tx := &Tx{st: st, ctx: ctx, session: session, seen: reads{}, wrote: map[string]int{}}
		err := tx.begin()
		if err == nil {
			err = f(tx)
		}
		if errors.Is(err, ErrSkip) || err == nil && len(tx.ops) == 0 {
			return nil
		}
		if err == nil {
			confine(tx.ops, session)
			err = st.embedAndCommit(ctx, tx.ops, tx.seen, tx.listed, known)
		}
		var conflict *wal.ConflictError
		if errors.As(err, &conflict) {
			st.engine.Env.Logger.Debug("running a transaction again", "key", conflict.Key, "expected", conflict.LSN, "found", conflict.Found)
			continue
		}
		return err
	}
}

// Update changes one memory by a function, which may run again when somebody
// else changes it meanwhile. ErrNotFound if there is none; ErrSkip, returned by
// the function, writes nothing. It returns the memory as it is then.
func (st *Store) Update(ctx context.Context, id string, f func(m *Memory) error, conds ...Cond) (Memory, error) {
	var result Memory
	c := conditionsOf(conds)
	err := st.transactIn(ctx, c.session, func(tx *Tx) error {
		m, err := tx.Get(id)
		if err != nil {
			return err
		}
		result = m
		if err := f(&m); err != nil {
			return err
		}
		if m.ID != id {
			return &errs.FieldError{Field: "id", Value: quote(m.ID), Err: fmt.Errorf("%w: Update cannot change it from %s", errs.ErrInvalid, quote(id))}
		}
		result = m
		tx.put(&result, c)
		return nil
	})
	if err != nil {
		return Memory{}, err
	}
	return *result.Clone(), nil
}

// Get reads a memory, also one that the transaction has written.
func (tx *Tx) Get(id string) (Memory, error) {
	if i, ok := tx.wrote[engine.MemoryKey(id)]; ok {
		if m := tx.ops[i].memory; m != nil {
			return *m.Clone(), nil
		}
		return Memory{}, fmt.Errorf("memory %s: %w", quote(id), errs.ErrNotFound)
	}
	v, err := tx.load(tx.st.engine.Kinds.Memories, id)
	if err != nil {
		return Memory{}, err
	}
	if err := admits(tx.session, v.Line.SessionID); err != nil {
		return Memory{}, fmt.Errorf("memory %s: %w", quote(id), err)
	}
	return tx.st.engine.Decode(id, v)
}

// Assembly reads an assembly, also one that the transaction has written: that one
// as it was given, without what the commit makes of it.
func (tx *Tx) Assembly(id string) (Assembly, error) {
	k := tx.st.engine.Kinds.Assemblies
	if i, ok := tx.wrote[k.Key(id)]; ok {
		if a := tx.ops[i].assembly; a != nil {
			return *a.Clone(), nil
		}
		return Assembly{}, fmt.Errorf("assembly %s: %w", quote(id), errs.ErrNotFound)
	}
	v, err := tx.load(k, id)
	if err != nil {
		return Assembly{}, err
	}
	return tx.st.engine.DecodeAssembly(id, v)
}

// load reads what the transaction has not written, and notes what it saw.
func (tx *Tx) load(k *engine.Kind, id string) (engine.Version, error) {
	v, err := tx.st.engine.Load(tx.ctx, k, id)
	gone := errors.Is(err, errs.ErrNotFound)
	if err != nil && !gone {
		return v, fmt.Errorf("%s %s: %w", k.Noun, quote(id), err)
	}
	if err := tx.see(k.Key(id), v.LSN); err != nil {
		return v, err
	}
	if gone || v.Expired(tx.st.engine.Env.Clock()) {
		return v, fmt.Errorf("%s %s: %w", k.Noun, quote(id), errs.ErrNotFound)
	}
	return v, nil
}

// see notes what was read. A run that sees two moments is not committed.
func (tx *Tx) see(key string, v wal.LSN) error {
	if was, ok := tx.seen[key]; ok && was != v {
		return &wal.ConflictError{Precondition: wal.Precondition{Key: key, LSN: was}, Found: v}
	}
	tx.seen[key] = v
	return nil
}

// Put writes a memory; its id is set if it had none.
func (tx *Tx) Put(m Memory, conds ...Cond) (Memory, error) {
	m = *m.Clone()
	if m.ID == "" {
		id, err := tx.st.newID()
		if err != nil {
			return Memory{}, err
		}
		m.ID = id
	}
	c := conditionsOf(conds)
	if c.session == nil {
		c.session = tx.session
	}
	if err := join(c.session, &m); err != nil {
		return Memory{}, fmt.Errorf("memory %s: %w", quote(m.ID), err)
	}
	tx.put(&m, c)
	return m, nil
}

func (tx *Tx) put(m *Memory, c conditions) { tx.add(op{id: m.ID, memory: m, conds: c}) }

// putEmbedded writes a memory of which nothing changed but the embedding, by the
// store itself.
func (tx *Tx) putEmbedded(m *Memory) {
	tx.add(op{id: m.ID, memory: m, derived: true, conds: conditions{unlimited: true}})
}

// suits holds the transaction to the model that the embedder's vectors are for.
func (tx *Tx) suits() error {
	model := tx.st.vectors.Model()
	if err := tx.st.suits(&model); err != nil {
		return err
	}
	return tx.see(state.ModelKey, model.LSN)
}

// Delete deletes a memory; ErrNotFound if there is none.
func (tx *Tx) Delete(id string, conds ...Cond) error {
	if _, err := tx.Get(id); err != nil {
		return err
	}
	tx.add(op{id: id, conds: conditionsOf(conds)})
	return nil
}

// DeleteAll deletes those of some memories that are there, without reading them first:
// much quicker than Delete where they are many.
func (tx *Tx) DeleteAll(ids ...string) {
	for _, id := range ids {
		tx.add(op{id: id})
	}
}

// PutAssembly writes an assembly; its id is set if it had none. Memories that the
// transaction has put count as there; those that it deletes later leave it.
func (tx *Tx) PutAssembly(a Assembly, conds ...Cond) (Assembly, error) {
	a = *a.Clone()
	if a.ID == "" {
		id, err := tx.st.newID()
		if err != nil {
			return Assembly{}, err
		}
		a.ID = id
	}
	tx.putAssembly(&a, conds)
	return a, nil
}

func (tx *Tx) putAssembly(a *Assembly, conds []Cond) {
	tx.add(op{group: true, id: a.ID, assembly: a, conds: conditionsOf(conds)})
}

// DeleteAssembly deletes an assembly, not its members; ErrNotFound if there is none.
func (tx *Tx) DeleteAssembly(id string) error {
	if _, err := tx.Assembly(id); err != nil {
		return err
	}
	tx.add(op{group: true, id: id})
	return nil
}

// add notes an operation; of several on one id the last counts.
func (tx *Tx) add(o op) {
	k := tx.st.engine.Kinds.Memories
	if o.group {
		k = tx.st.engine.Kinds.Assemblies
	}
	tx.wrote[k.Key(o.id)] = len(tx.ops)
	tx.ops = append(tx.ops, o)
}

// List yields the memories that pass the filters, by id, without what the
// transaction itself wrote. Whoever lists sees to it that nothing at all is
// committed between the listing and the commit, or the function runs again: use
// it where writers are few.
func (tx *Tx) List(filters ...Filter) iter.Seq2[Memory, error] {
	return func(yield func(Memory, error) bool) {
		if err := tx.st.engine.Sight(tx.ctx); err != nil {
			yield(Memory{}, err)
			return
		}
		if tx.listed == 0 {
			tx.listed = tx.st.engine.Log.Applied()
		}
		f := filtersOf(filters)
		if tx.session != nil {
			if f.Session != nil && *f.Session != *tx.session {
				yield(Memory{}, &errs.SessionError{Session: *f.Session, Wanted: *tx.session})
				return
			}
			f.Session = tx.session
		}
		tx.st.engine.Each(tx.ctx, f, yield)
	}
}
