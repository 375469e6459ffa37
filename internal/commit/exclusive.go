package commit

import (
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/state"
)

// interest is an Interest in the log that lasts for all runs of a Transact's function. If each run began its own,
// every run would, among many writers, find entries that were already being read before.
type interest struct {
	*state.Interest
	from uint64 // the interest may miss entries that were read from the log before this position
}

// Exclusive requires that nothing at all is committed between this call and the transaction's own commit, by any
// process; otherwise the function runs again.
func (tx *Tx) Exclusive() error {
	if err := tx.cm.engine.CatchUp(tx.ctx); err != nil {
		return err
	}
	if tx.listed == 0 {
		tx.listed = tx.cm.engine.Log().Applied()
	}
	return nil
}

// ExclusiveAmong is like Exclusive, but requires only that no memory for which matches returns true is put; see
// state.Interest.Match.
func (tx *Tx) ExclusiveAmong(matches func(id string, doc []byte) bool) error {
	eng := tx.cm.engine
	if tx.among == len(*tx.interests) {
		i := interest{Interest: eng.State().Observe(kind.Memories, matches)}
		i.from = eng.Log().Read()
		*tx.interests = append(*tx.interests, i)
	}
	i := (*tx.interests)[tx.among]
	tx.among++
	i.Match(matches)
	if err := eng.CatchUp(tx.ctx); err != nil {
		return err
	}
	if eng.Log().Applied() < i.from {
		return tx.Exclusive() // entries that were being read when the interest began may be missed
	}
	return tx.See(i.Key(), i.Newest())
}

// endInterests ends the interests of a Transact.
func (cm *Committer) endInterests(list []interest) {
	for _, i := range list {
		cm.engine.State().Unobserve(i.Interest)
	}
}
