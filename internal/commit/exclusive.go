package commit

import (
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/state"
)

// interest watches the log for entries that a transaction excludes. One interest serves all runs of the
// transaction's function. If each run began its own, then with many writers each run would find entries that were
// already being read before it began.
type interest struct {
	*state.Interest
	// log position up to which entries had been read when the watch began; the watch may miss those of them that were
	// not applied yet
	from uint64
}

// Exclusive requires that nothing at all is committed between this call and the transaction's own commit, by
// any process; otherwise the transaction's function runs again.
func (tx *Tx) Exclusive() error {
	if err := tx.cm.engine.CatchUp(tx.ctx); err != nil {
		return err
	}
	if tx.listed == 0 {
		tx.listed = tx.cm.engine.Log().Applied()
	}
	return nil
}

// ExclusiveAmong is like Exclusive, but only puts of memories for which matches returns true are excluded; see
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

// endInterests ends the watches that a transaction has begun.
func (cm *Committer) endInterests(list []interest) {
	for _, i := range list {
		cm.engine.State().Unobserve(i.Interest)
	}
}
