package commit

import (
	"errors"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/view/counts"
	"github.com/varve-db/varve/wal"
)

// Transactions that read one memory and write it, by many, can only be one behind the other. If each
// waited for the one before to be durable, there would be one for each sync of the disk, and of several
// processes only one would have it. So who has the turn of the memory lets the next one go as soon as
// what he wrote is in the log, and the function of that one gets this version. Then both wait for the
// same sync.
//
// What a function was given in this way is told to nobody before it is durable: not by the version
// made of it, which stands behind it in the log, nor by an error of the function, or that it writes
// nothing (see settle). Measured, 4 processes of 16 goroutines that update four memories: 3,700 to
// 4,000/s when each waited, 6,700 to 8,400/s since.

// follow is what a transaction that has one memory's turn has read of it.
type follow struct {
	key   string
	hint  uint64 // of the state before it was read
	base  engine.Version
	err   error   // errs.ErrNotFound: there is none
	ahead wal.LSN // the version, if it may not be durable yet
	left  func()  // the next one may go
}

// newest is the version that a transaction gets: the newest durable one, or that in the log where
// this one has the turn.
func (tx *Tx) newest(k *engine.Kind, id string) (engine.Version, error) {
	e := tx.cm.Engine
	if tx.turn.in == nil || tx.turn.key != k.Key(id) || k != e.Kinds.Memories || !tx.cm.mayFollow() {
		return e.Load(tx.ctx, k, id)
	}
	f := &tx.follows
	if f.key != "" {
		return f.base, f.err
	}
	hint := e.State.Hint()
	v, ok, err := tx.written(k.Key(id))
	if err != nil {
		return v, err
	}
	if !ok {
		v, err = e.Load(tx.ctx, k, id)
	}
	if err == nil || errors.Is(err, errs.ErrNotFound) {
		f.key, f.hint, f.base, f.err, f.left = k.Key(id), hint, v, err, tx.turn.leave
	}
	return v, err
}

// mayFollow says that nothing but the version before goes into a put.
func (cm *Committer) mayFollow() bool {
	return !cm.Embeds && cm.Engine.Log.Damage() == nil && !cm.Engine.State.Grouped() &&
		counts.LimitsOf(cm.Engine.Settings.Now()) == nil && cm.Vectors.Model().Since == 0
}

// written is the version of a memory that is in the log and not applied yet. It waits until
// something else, such as its deletion, is.
func (tx *Tx) written(key string) (engine.Version, bool, error) {
	e, ok := tx.cm.Engine.Log.Ahead(tx.ctx, key)
	if !ok {
		return engine.Version{}, false, nil
	}
	if e.Kind == record.KindPut && !e.Delete {
		if line, view, err := state.LineIn(&e); err == nil {
			if doc, err := tx.cm.Engine.Codec.Doc(&view, places.StoredMost); err == nil {
				tx.follows.ahead = e.LSN
				return engine.Version{LSN: e.LSN, Line: line, Doc: doc}, true, nil
			}
		}
	}
	return engine.Version{}, false, tx.cm.Engine.Log.Settle(tx.ctx, e.LSN)
}

// follow has the put of a transaction that did nothing else made of the version that it has read.
func (tx *Tx) follow() {
	if len(tx.ops) != 1 || len(tx.seen) != 1 || tx.listed != 0 || tx.follows.key == "" {
		return
	}
	if o := &tx.ops[0]; o.Memory != nil && engine.MemoryKey(o.ID) == tx.follows.key && !o.Derived {
		o.follows = &tx.follows
	}
}

// settle answers a transaction that has not committed.
func (tx *Tx) settle(err error) error {
	if tx.follows.ahead == 0 {
		return err
	}
	if serr := tx.cm.Engine.Log.Settle(tx.ctx, tx.follows.ahead); serr != nil {
		return errors.Join(err, serr)
	}
	return err
}
