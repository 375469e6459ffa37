package commit

import (
	"sync"
	"sync/atomic"

	"github.com/varve-db/varve/internal/graph"
	"github.com/varve-db/varve/internal/state"
)

// ends says since when this process notes which relations are put.
type ends struct {
	once sync.Once
	from atomic.Uint64
}

// begin does what the transaction's context asks for before each run of its function.
func (tx *Tx) begin() error {
	if names := graph.AloneNames(tx.ctx); names != nil {
		return tx.aloneAt(names)
	}
	return nil
}

// aloneAt holds a transaction to this moment as Alone does, but to relations with one of
// the names at an end alone: see graph.AloneAt, by which it is asked for.
func (tx *Tx) aloneAt(names []string) error {
	tx.cm.watchEnds()
	if err := tx.cm.Engine.Sight(tx.ctx); err != nil {
		return err
	}
	if tx.cm.Engine.Log.Applied() < tx.cm.ends.from.Load() {
		return tx.Alone() // what was on its way when it began may not be noted
	}
	for _, name := range append([]string{""}, names...) {
		if err := tx.See(state.EndsKey(name), tx.cm.Engine.State.NewestEnd(name)); err != nil {
			return err
		}
	}
	return nil
}

// watchEnds begins to note what relations are put.
func (cm *Committer) watchEnds() {
	cm.ends.once.Do(func() {
		cm.Engine.State.WatchEnds()
		cm.ends.from.Store(cm.Engine.Log.Read())
	})
}
