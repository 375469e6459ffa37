package counts

import (
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
)

// How a limit is enforced while several processes write: a writer reads the tally and adds a precondition to its commit
// that fails if other commits may have used up the room in between. There are three cases:
//
//   - There is room: the precondition is that no more was put since the tally was read, into the store or the session,
//     than the room allows (state.PutsKey, state.PutBytesKey). Writers do not disturb each other as long as all commits
//     in progress fit together. A commit that fails reads the tally again; each failure means that another commit
//     succeeded.
//   - There is no room, and memories are evicted: the preconditions are the versions of the evicted memories, which the
//     same commit deletes. The commit adds no more than it removes, so the totals need not be checked.
//   - There is no room, and nothing is evicted: the write is refused, which is correct as of the moment of reading.

// Limits are the limits currently set in config.json.
type Limits struct {
	All, Session Sum // maximum number and bytes of memories, of the store and of each session; 0: no limit
	At           string
}

// LimitsOf returns the limits of a configuration, or nil if the configuration has no limits.
func LimitsOf(c *settings.Config) *Limits {
	l := &Limits{Sum{c.MaxMemories, c.MaxBytes}, Sum{c.MaxSessionMemories, c.MaxSessionBytes}, c.AtLimit}
	if l.All == (Sum{}) && l.Session == (Sum{}) {
		return nil
	}
	return l
}

// Effect is the change that one operation makes to the number and bytes of memories. Was counts the version that the
// operation replaces or deletes, in the session WasSession; Is counts the version that the operation writes, in the
// session IsSession. A zero Sum means that there is no such version.
type Effect struct {
	Was, Is               Sum
	WasSession, IsSession string
}

// Demand describes a commit that adds memories to the store or to a session that has a limit. Limit is that limit, Add
// the number and bytes that the commit adds, and Have the number and bytes before the commit.
type Demand struct {
	Session string // the session; "": the store
	Limit   Sum
	Add     Sum
	Have    Sum
}

// Over returns by how much the demand exceeds its limit.
func (d *Demand) Over() Sum {
	var o Sum
	if d.Limit.N > 0 && d.Add.N > 0 {
		o.N = max(0, d.Have.N+d.Add.N-d.Limit.N)
	}
	if d.Limit.Bytes > 0 && d.Add.Bytes > 0 {
		o.Bytes = max(0, d.Have.Bytes+d.Add.Bytes-d.Limit.Bytes)
	}
	return o
}

// Never reports whether the demand exceeds its limit even in an empty store or session.
func (d *Demand) Never() bool {
	return d.Limit.N > 0 && d.Add.N > d.Limit.N || d.Limit.Bytes > 0 && d.Add.Bytes > d.Limit.Bytes
}

// Within returns the preconditions that make a commit fail if concurrent puts leave too little room for the
// demand. totals has the running totals of puts (see PutTotals). The caller must have read totals before it read
// the number of memories.
func (d *Demand) Within(totals Sum) (list []wal.Precondition) {
	add := func(key string, before, room int64) {
		list = append(list, wal.Precondition{Key: key, LSN: uint64(before), Most: uint64(min(room, state.MostPuts))})
	}
	if d.Limit.N > 0 && d.Add.N > 0 {
		add(state.PutsKey(d.Session), totals.N, d.Limit.N-d.Have.N-d.Add.N)
	}
	if d.Limit.Bytes > 0 && d.Add.Bytes > 0 {
		add(state.PutBytesKey(d.Session), totals.Bytes, d.Limit.Bytes-d.Have.Bytes-d.Add.Bytes)
	}
	return list
}

// Grows reports whether the demand increases a quantity that is limited: the number of memories or their size in bytes.
func (d *Demand) Grows() bool {
	return d.Limit.N > 0 && d.Add.N > 0 || d.Limit.Bytes > 0 && d.Add.Bytes > 0
}

// Watch makes the store's state count the puts into the store and into each session from now on. Further calls have no
// effect.
func (cs *Counts) Watch() {
	cs.watching.Do(func() {
		cs.engine.State().WatchPuts()
		cs.putsFrom.Store(cs.engine.Log().Read())
	})
}

// PutTotals returns the running totals of all puts into a session, or into the store if session is "".
func (cs *Counts) PutTotals(session string) Sum {
	return Sum{int64(cs.engine.State().PutCount(session)), int64(cs.engine.State().PutSize(session))}
}

// Refusal returns the error of a write that would exceed the limit, an *errs.LimitError.
func (d *Demand) Refusal() error {
	o := d.Over()
	e := &errs.LimitError{Session: d.Session, What: "memories", Setting: "max_memories", Limit: d.Limit.N, Have: d.Have.N,
		Add: d.Add.N}
	if o.N == 0 {
		e.What, e.Setting, e.Limit, e.Have, e.Add = "bytes", "max_bytes", d.Limit.Bytes, d.Have.Bytes, d.Add.Bytes
	}
	if d.Session != "" {
		e.Setting = strings.Replace(e.Setting, "max_", "max_session_", 1)
	}
	return e
}
