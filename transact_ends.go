package varve

import (
	"github.com/varve-db/varve/internal/graph"
	"github.com/varve-db/varve/internal/state"
)

// aloneAt holds a transaction to this moment as Alone does, but to relations with one of
// the names at an end alone: see graph.AloneAt, by which it is asked for.
func (tx *Tx) aloneAt(names []string) error {
	tx.st.watchEnds()
	if err := tx.st.engine.Sight(tx.ctx); err != nil {
		return err
	}
	if tx.st.engine.Log.Applied() < tx.st.endsFrom.Load() {
		return tx.Alone() // what was on its way when it began may not be noted
	}
	for _, name := range append([]string{""}, names...) {
		if err := tx.see(state.EndsKey(name), tx.st.engine.State.NewestEnd(name)); err != nil {
			return err
		}
	}
	return nil
}

// watchEnds begins to note what relations are put.
func (st *Store) watchEnds() {
	st.watchingEnds.Do(func() {
		st.engine.State.WatchEnds()
		st.endsFrom.Store(st.engine.Log.Read())
	})
}

// begin does what the transaction's context asks for before each run of its function.
func (tx *Tx) begin() error {
	if names := graph.AloneNames(tx.ctx); names != nil {
		return tx.aloneAt(names)
	}
	return nil
}
