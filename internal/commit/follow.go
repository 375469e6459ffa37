package commit

import (
	"context"
	"errors"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/view/counts"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/wal"
)

// Transactions that read and write one memory can only run one after the other. If each waited until the one before it
// is durable, there would be one per sync of the disk, and of several processes only one would make progress. So the
// transaction that has the turn of the memory passes the turn on as soon as its version is in the log, and the next
// function gets this version. Then the two transactions wait for the same sync.
//
// The version that a function got in this way is not revealed before it is durable: not by the version based on it,
// which is behind it in the log, nor by an error of the function, nor by its writing nothing (see settle). Everything
// else that is read is durable, and may be older. So only Update, which reads one memory, gets such versions. Measured
// with 4 processes of 16 goroutines that update four memories: 3,700 to 4,000/s when each waited, 6,700 to 8,400/s
// since.

// follow is a memory version that a transaction has read during its turn for that memory (see turns), and that its
// put replaces.
type follow struct {
	key   string
	hint  uint64 // state.Hint from before the memory was read
	base  engine.Version
	err   error   // result of reading the memory: nil, or errs.ErrNotFound if the memory does not exist
	ahead wal.LSN // the version that was read, if it may not be durable yet; otherwise 0
	left  func()  // gives the turn of the memory to the next writer
}

// Latest returns a memory for a transaction that reads and writes only this memory. If the transaction has the
// turn of the memory (see turns), Latest returns the newest version in the log, which may not be durable yet.
func Latest(tx *Tx, id string) (memstore.Memory, error) {
	k := tx.cm.engine.Kinds().Memories
	if err := tx.turn.join(tx.ctx, k.Key(id)); err != nil {
		return memstore.Memory{}, err
	}
	read := tx.cm.engine.Load
	if tx.turn.in != nil && tx.turn.key == k.Key(id) && tx.cm.mayFollow() {
		read = tx.latest
	}
	v, err := tx.load(k, id, read)
	if err != nil {
		return memstore.Memory{}, err
	}
	return tx.admitted(id, v)
}

// latest reads the newest version of a document in the log, which may not be durable yet.
func (tx *Tx) latest(ctx context.Context, k *engine.Kind, id string) (engine.Version, error) {
	hint := tx.cm.engine.State().Hint()
	v, ok, err := tx.ahead(k.Key(id))
	if err != nil {
		return v, err
	}
	if !ok {
		v, err = tx.cm.engine.Load(ctx, k, id)
	}
	if err == nil || errors.Is(err, errs.ErrNotFound) {
		tx.follows = follow{key: k.Key(id), hint: hint, base: v, err: err, left: tx.turn.leave}
		if ok {
			tx.follows.ahead = v.LSN
		}
	}
	return v, err
}

// mayFollow reports whether a put depends on nothing but the version before it. That is so if puts call no embedder,
// and the store has no damage, no assemblies and no limits, and has never changed its embedding model.
func (cm *Committer) mayFollow() bool {
	return !cm.embeds && cm.engine.Log().Damage() == nil && !cm.engine.State().Grouped() &&
		counts.LimitsOf(cm.engine.Settings().Now()) == nil && cm.vectors.Model().Since == 0
}

// ahead returns the newest version of a memory, if this version is in the log and not applied yet; otherwise ok is
// false. ok is also false if the newest entry of the memory is a deletion, or part of a batch with other entries.
// ahead then waits until the entry is durable: otherwise a caller could learn of entries that never become durable.
func (tx *Tx) ahead(key string) (v engine.Version, ok bool, err error) {
	log := tx.cm.engine.Log()
	e, sole, ok := log.Ahead(tx.ctx, key)
	if !ok {
		return v, false, nil
	}
	if sole && e.Kind == record.KindPut && !e.Delete {
		if line, view, err := state.LineIn(&e); err == nil {
			if doc, err := tx.cm.engine.Codec().Doc(&view, places.StoredMost); err == nil {
				return engine.Version{LSN: e.LSN, Line: line, Doc: doc}, true, nil
			}
		}
	}
	return v, false, log.Settle(tx.ctx, e.LSN)
}

// follow makes the transaction's only put depend on the memory version that the transaction has read.
func (tx *Tx) follow() {
	if len(tx.ops) == 1 && tx.follows.key != "" {
		tx.ops[0].follows = &tx.follows
	}
}

// followed returns the follow of the only operation of a commit: the version that the operation is based on, which may
// not be durable yet. It returns nil if the operation has no follow, or if there are several operations.
func followed(ops []Op) *follow {
	if len(ops) != 1 {
		return nil
	}
	return ops[0].follows
}

// run calls the function f of the transaction. If f panics, the panic may reveal the version that f has read, so run
// first waits until that version is durable.
func (tx *Tx) run(f func(tx *Tx) error) error {
	ended := false
	defer func() {
		if !ended {
			_ = tx.settle(nil)
		}
	}()
	err := f(tx)
	ended = true
	return err
}

// settle returns the result of a transaction that has not committed. err is the error of the transaction's function.
// settle first waits until the version that the transaction read is durable. If that fails, settle returns the failure
// instead of err.
func (tx *Tx) settle(err error) error {
	tx.turn.leave()
	if tx.follows.ahead == 0 || errors.Is(err, errs.ErrOutcomeUnknown) || errors.Is(err, errs.ErrSyncFailed) {
		return err
	}
	if serr := tx.cm.engine.Log().Settle(tx.ctx, tx.follows.ahead); serr != nil {
		return serr
	}
	return err
}
