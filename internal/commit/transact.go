package commit

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/wal"
)

// Write is a function that commits operations on the condition that the versions in seen are still the newest.
// Committer.Commit is a Write.
type Write func(ctx context.Context, ops []Op, seen Reads, listed wal.LSN) error

// Tx reads and writes several documents in one commit. It is used by one goroutine, in the function of Transact.
type Tx struct {
	cm      *Committer
	ctx     context.Context
	session *string // the session that the transaction is confined to; nil: none
	seen    Reads
	listed  wal.LSN
	ops     []Op
	wrote   map[string]int // index in the operations of the last write of a document, by key

	follows   follow
	turn      *turn       // the transaction's place in the queue of writers, shared by all runs of the function
	interests *[]interest // the watches for excluded entries, shared by all runs of the function
	among     int         // number of these watches that this run has used
}

// The limits up to which a transaction that excludes other entries runs alongside other writers: the number of runs of
// its function, and the time. If the other writers never pause, and the transaction's run takes longer the more they
// put, the transaction would never end. After these limits the other writers wait for it.
//
// The same applies to any transaction that conflicts this often and for this long, because puts without a condition
// never lose a conflict. But the function of such a transaction must be short, since all writers wait for it.
const (
	patience      = 8
	longPatience  = time.Second
	someTime      = 300 * time.Millisecond
	shortFunction = 20 * time.Millisecond
)

// Transact runs the function f, which reads and writes through tx, and passes the operations that f wrote to
// write. If something that f read was changed meanwhile, f runs again. If session is not nil, f can only
// access memories of that session.
func (cm *Committer) Transact(ctx context.Context, session *string, write Write, f func(tx *Tx) error) error {
	began, held := cm.engine.Env().Clock(), false // held: all other writers wait
	var interests []interest
	defer func() { cm.endInterests(interests) }()
	turn := cm.turn()
	defer turn.leave()
	var ran time.Duration
	for tries := 1; ; tries++ {
		took := cm.engine.Env().Clock().Sub(began)
		if !held && (len(interests) > 0 && (tries > patience || took > longPatience) ||
			tries > patience && took > someTime && ran < shortFunction) {
			if err := cm.engine.ExplainWriter(ctx); err != nil {
				return err
			}
			x, err := cm.engine.Log().Exclusive(ctx)
			if err != nil {
				return err
			}
			defer func() {
				if err := x.Release(); err != nil {
					cm.engine.Env().Logger.Error("the lock that keeps other writers waiting cannot be released", "err", err)
				}
			}()
			ctx, held = x.In(ctx), true
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		tx := &Tx{cm: cm, ctx: ctx, session: session, seen: Reads{}, wrote: map[string]int{}, turn: &turn,
			interests: &interests}
		start := cm.engine.Env().Clock()
		err := tx.run(f)
		ran = cm.engine.Env().Clock().Sub(start)
		if errors.Is(err, errs.ErrSkip) || err == nil && len(tx.ops) == 0 {
			return tx.settle(nil)
		}
		if err == nil {
			Confine(tx.ops, session)
			tx.follow()
			if err = write(ctx, tx.ops, tx.seen, tx.listed); err == nil {
				return nil
			}
		}
		var conflict *wal.ConflictError
		if errors.As(err, &conflict) {
			cm.engine.Env().Logger.Debug("running a transaction again", "key", conflict.Key, "expected", conflict.LSN, "found",
				conflict.Found)
			if err := turn.take(ctx, conflict.Key); err != nil {
				return err
			}
			continue
		}
		return tx.settle(err)
	}
}

// Get returns a memory, including one that the transaction has written.
func (tx *Tx) Get(id string) (memstore.Memory, error) {
	if i, ok := tx.wrote[engine.MemoryKey(id)]; ok {
		if m := tx.ops[i].Memory; m != nil {
			return *m.Clone(), nil
		}
		return memstore.Memory{}, fmt.Errorf("memory %s: %w", human.Quote(id), errs.ErrNotFound)
	}
	v, err := tx.Load(tx.cm.engine.Kinds().Memories, id)
	if err != nil {
		return memstore.Memory{}, err
	}
	return tx.admitted(id, v)
}

// admitted returns the memory of a version, or an error if the session of the transaction may not read it.
func (tx *Tx) admitted(id string, v engine.Version) (memstore.Memory, error) {
	if err := Admits(tx.session, v.Line.SessionID); err != nil {
		return memstore.Memory{}, fmt.Errorf("memory %s: %w", human.Quote(id), err)
	}
	return tx.cm.engine.Decode(id, v)
}

// Assembly returns an assembly, including one that the transaction has written. An assembly that the transaction has
// written is returned as it was passed to the transaction, without what the commit adds.
func (tx *Tx) Assembly(id string) (assembly.Assembly, error) {
	k := tx.cm.engine.Kinds().Assemblies
	if i, ok := tx.wrote[k.Key(id)]; ok {
		if a := tx.ops[i].Assembly; a != nil {
			return *a.Clone(), nil
		}
		return assembly.Assembly{}, fmt.Errorf("assembly %s: %w", human.Quote(id), errs.ErrNotFound)
	}
	v, err := tx.Load(k, id)
	if err != nil {
		return assembly.Assembly{}, err
	}
	return tx.cm.engine.DecodeAssembly(id, v)
}

// Load reads a document that the transaction has not written, and records the version that it read, or that there is
// none. If the document does not exist or has expired, the error matches errs.ErrNotFound.
func (tx *Tx) Load(k *engine.Kind, id string) (engine.Version, error) {
	if err := tx.turn.join(tx.ctx, k.Key(id)); err != nil {
		return engine.Version{}, err
	}
	return tx.load(k, id, tx.cm.engine.Load)
}

// load does what Load does, but calls read to read the document.
func (tx *Tx) load(k *engine.Kind, id string,
	read func(ctx context.Context, k *engine.Kind, id string) (engine.Version, error)) (engine.Version, error) {
	v, err := read(tx.ctx, k, id)
	gone := errors.Is(err, errs.ErrNotFound)
	if err != nil && !gone {
		return v, fmt.Errorf("%s %s: %w", k.Noun, human.Quote(id), err)
	}
	if err := tx.See(k.Key(id), v.LSN); err != nil {
		return v, err
	}
	if !gone && v.Expired(tx.cm.engine.Env().Clock()) {
		if err := ConfirmExpired(tx.cm.clock, id, v.LSN, v.Line.ExpiresAt); err != nil {
			return v, err
		}
		gone = true
	}
	if gone {
		return v, fmt.Errorf("%s %s: %w", k.Noun, human.Quote(id), errs.ErrNotFound)
	}
	return v, nil
}

// See records that the transaction has read version v of a key. A run that has read two different versions of a key is
// not committed.
func (tx *Tx) See(key string, v wal.LSN) error {
	if was, ok := tx.seen[key]; ok && was != v {
		return &wal.ConflictError{Precondition: wal.Precondition{Key: key, LSN: was}, Found: v}
	}
	tx.seen[key] = v
	return nil
}

// Put writes a memory with the transaction, and returns it. An empty id is replaced by a new one.
func (tx *Tx) Put(m memstore.Memory, c Conditions) (memstore.Memory, error) {
	m = *m.Clone()
	if m.ID == "" {
		id, err := tx.newID()
		if err != nil {
			return memstore.Memory{}, err
		}
		m.ID = id
	}
	if c.Session == nil {
		c.Session = tx.session
	}
	if err := Join(c.Session, &m); err != nil {
		return memstore.Memory{}, fmt.Errorf("memory %s: %w", human.Quote(m.ID), err)
	}
	tx.PutAt(&m, c)
	return m, nil
}

// PutAt writes a memory whose id is set. The commit updates m to the memory as stored.
func (tx *Tx) PutAt(m *memstore.Memory, c Conditions) {
	tx.add(Op{ID: m.ID, Memory: m, Conds: c})
}

// PutEmbedded writes a memory in which the store itself has changed only the embedding.
func (tx *Tx) PutEmbedded(m *memstore.Memory) {
	tx.add(Op{ID: m.ID, Memory: m, Derived: true, Conds: Conditions{Unlimited: true}})
}

// Suits returns an error unless the store's embedding model is the embedder's model. name is the name that the
// store would give to the embedder's model. If the store's model changes after this call, the commit fails.
func (tx *Tx) Suits(name string) error {
	model := tx.cm.vectors.Model()
	if err := tx.cm.suits(&model, name); err != nil {
		return err
	}
	return tx.See(state.ModelKey, model.LSN)
}

// Delete deletes a memory. If no memory has this id, the error matches errs.ErrNotFound.
func (tx *Tx) Delete(id string, c Conditions) error {
	if _, err := tx.Get(id); err != nil {
		return err
	}
	tx.add(Op{ID: id, Conds: c})
	return nil
}

// DeleteAll deletes the memories with these ids, without reading them first. It ignores ids that do not exist.
func (tx *Tx) DeleteAll(ids ...string) {
	for _, id := range ids {
		tx.add(Op{ID: id})
	}
}

// PutAssembly writes an assembly with the transaction, and returns it. An empty id is replaced by a new one. Memories
// that the transaction has put are valid members; members that the transaction deletes later are removed from the
// assembly.
func (tx *Tx) PutAssembly(a assembly.Assembly, c Conditions) (assembly.Assembly, error) {
	a = *a.Clone()
	if a.ID == "" {
		id, err := tx.newID()
		if err != nil {
			return assembly.Assembly{}, err
		}
		a.ID = id
	}
	tx.PutAssemblyAt(&a, c)
	return a, nil
}

// PutAssemblyAt writes an assembly whose id is set. The commit updates a to the assembly as stored.
func (tx *Tx) PutAssemblyAt(a *assembly.Assembly, c Conditions) {
	tx.add(Op{Group: true, ID: a.ID, Assembly: a, Conds: c})
}

// DeleteAssembly deletes an assembly, and keeps its members. If no assembly has this id, the error matches
// errs.ErrNotFound.
func (tx *Tx) DeleteAssembly(id string) error {
	if _, err := tx.Assembly(id); err != nil {
		return err
	}
	tx.add(Op{Group: true, ID: id})
	return nil
}

// add adds an operation. If several are on one id, only the last is written.
func (tx *Tx) add(o Op) {
	k := tx.cm.engine.Kinds().Memories
	if o.Group {
		k = tx.cm.engine.Kinds().Assemblies
	}
	tx.wrote[k.Key(o.ID)] = len(tx.ops)
	tx.ops = append(tx.ops, o)
}

// List yields the memories that pass the filters, in the order of their ids, without those that the
// transaction itself wrote. From this moment on the transaction is exclusive: see Exclusive.
func (tx *Tx) List(f engine.Filters) iter.Seq2[memstore.Memory, error] {
	return func(yield func(memstore.Memory, error) bool) {
		if err := tx.Exclusive(); err != nil {
			yield(memstore.Memory{}, err)
			return
		}
		if tx.session != nil {
			if f.Session != nil && *f.Session != *tx.session {
				yield(memstore.Memory{}, &errs.SessionError{Session: *f.Session, Wanted: *tx.session})
				return
			}
			f.Session = tx.session
		}
		tx.cm.engine.Each(tx.ctx, f, yield)
	}
}

func (tx *Tx) newID() (string, error) {
	return memstore.NewID(tx.cm.engine.Env().Clock(), tx.cm.engine.Env().Rand())
}
