package counts

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// A commit makes room for what it adds. Candidates are claimed once per process, so several commits can make room at
// the same time. But if a store holds more than its limit (after the limit was lowered), a commit evicts all of the
// excess, and two concurrent commits would evict it twice. So a commit that finds an excess runs alone. Between
// processes the preconditions on the evicted versions have the same effect, since all processes evict in the same
// order.

// Turn is the permission of a commit to evict memories. A commit may have no permission, may share a permission with
// other commits, or may be the only commit that evicts.
type Turn int64

// The turns: no eviction, eviction beside commits of this process that also evict, eviction alone.
const (
	NoTurn Turn = 0
	Beside Turn = 1
	Alone  Turn = 1 << 40
)

// turns grants permissions to evict in the order of the requests.
type turns struct{ held *semaphore.Weighted }

// Take waits until the commit may evict memories. waited reports whether another commit had the permission at first:
// that commit may have made room, so the caller should count the memories again.
func (x *Evictions) Take(ctx context.Context, t Turn) (waited bool, err error) {
	if x.turns.held.TryAcquire(int64(t)) {
		return false, nil
	}
	return true, x.turns.held.Acquire(ctx, int64(t))
}

// Leave gives back a permission to evict.
func (x *Evictions) Leave(t Turn) {
	if t != NoTurn {
		x.turns.held.Release(int64(t))
	}
}

// Turn returns the permission to evict that a commit with this demand needs: NoTurn if there is room for the commit,
// Alone if the limit is exceeded already before the commit, and otherwise Beside.
func (d *Demand) Turn() Turn {
	switch {
	case d.Over() == Sum{}:
		return NoTurn
	case d.Limit.N > 0 && d.Have.N > d.Limit.N || d.Limit.Bytes > 0 && d.Have.Bytes > d.Limit.Bytes:
		return Alone
	}
	return Beside
}
