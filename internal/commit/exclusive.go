package commit

import (
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
)

// interest watches the log for entries that must not be added before a commit. One interest serves all runs of the
// function of a transaction.
//
// To use an interest, catch up with the log, get the interest's precondition, then call wal's AnyAhead with Matches,
// and then look for what must not exist. If AnyAhead reports an entry, the precondition does not exclude that entry.
// In this order, an entry that is applied meanwhile either makes the precondition fail, or is in the state when
// AnyAhead returns.
type interest struct{ *state.Interest }

// precondition returns the precondition that no entry was added that matches the interest, besides the entries that
// were applied before the call.
func (i interest) precondition() wal.Precondition {
	return wal.Precondition{Key: i.Key(), LSN: i.Newest()}
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
		*tx.interests = append(*tx.interests, interest{eng.State().Observe(kind.Memories, matches)})
	}
	i := (*tx.interests)[tx.among]
	tx.among++
	i.Match(matches)
	if err := eng.CatchUp(tx.ctx); err != nil {
		return err
	}
	p := i.precondition()
	if eng.Log().AnyAhead(i.Matches) {
		// The interest may have begun, or its condition may have changed, after the entry was read.
		return tx.Exclusive()
	}
	return tx.See(p.Key, p.LSN)
}

// endInterests ends the interests in list, which a transaction has begun.
func (cm *Committer) endInterests(list []interest) {
	for _, i := range list {
		cm.engine.State().Unobserve(i.Interest)
	}
}
