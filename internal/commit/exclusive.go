package commit

import (
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/state"
)

// interest is one of a Transact. It goes on over all runs of its function: among many writers,
// one that began with each run would find each time something that was on its way before.
type interest struct {
	*state.Interest
	from uint64 // what was read of the log before may not be noted
}

// Exclusive holds the transaction to this moment: when anything at all is committed between
// here and its own commit, by whatever process, the function runs again.
func (tx *Tx) Exclusive() error {
	if err := tx.cm.engine.CatchUp(tx.ctx); err != nil {
		return err
	}
	if tx.listed == 0 {
		tx.listed = tx.cm.engine.Log().Applied()
	}
	return nil
}

// ExclusiveAmong holds the transaction to this moment as Alone does, but to memories alone of
// which matches says true when they are put; see state.Interest.Match.
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
		return tx.Exclusive() // what was on its way when it began may not be noted
	}
	return tx.See(i.Key(), i.Newest())
}

// endInterests ends those of a Transact.
func (cm *Committer) endInterests(list []interest) {
	for _, i := range list {
		cm.engine.State().Unobserve(i.Interest)
	}
}
