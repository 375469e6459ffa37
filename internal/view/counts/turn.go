package counts

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// A commit makes room for what it adds, and candidates are handed out once in a process: so many
// commits make room at the same time. Where there is more than a limit allows (it was lowered), a
// commit makes room for all that is too much, and two that did so would each delete as much: a
// commit that finds this has its turn alone. Between processes the conditions on what is deleted do
// the same, for both begin with the memory that goes first.

// Turn is in what company a commit of this process makes room.
type Turn int64

// The turns, from none to alone.
const (
	NoTurn Turn = 0
	Beside Turn = 1
	Alone  Turn = 1 << 40
)

// turns are handed out in the order in which they were asked for.
type turns struct{ held *semaphore.Weighted }

// Take waits for a turn. waited: others may have made room meanwhile.
func (x *Evictions) Take(ctx context.Context, t Turn) (waited bool, err error) {
	if x.turns.held.TryAcquire(int64(t)) {
		return false, nil
	}
	return true, x.turns.held.Acquire(ctx, int64(t))
}

// Leave gives it back.
func (x *Evictions) Leave(t Turn) {
	if t != NoTurn {
		x.turns.held.Release(int64(t))
	}
}

// Turn is the one that a demand needs.
func (d *Demand) Turn() Turn {
	switch {
	case d.Over() == Sum{}:
		return NoTurn
	case d.Limit.N > 0 && d.Have.N > d.Limit.N || d.Limit.Bytes > 0 && d.Have.Bytes > d.Limit.Bytes:
		return Alone
	}
	return Beside
}
