package counts

import (
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
)

// How a limit holds though several processes write. A writer looks at the tally and names, as a
// precondition of the commit, something that fails if others may have used up the room in between:
//
//   - There is room: that no more was put since the look, into the store or into the
//     session, than this room allows (state.PutsKey, state.PutBytesKey). Nobody disturbs
//     anybody as long as all that is under way at once fits; what does not looks again,
//     and each time another one got through.
//   - There is none, and others make room: the versions of those that go, in the same
//     commit. It adds no more than it takes away, so nothing needs to be known of the sum.
//   - There is none: the answer is a refusal, true of the moment of the look.

// Limits are those of config.json that hold now.
type Limits struct {
	All, Session Sum // 0: none
	At           string
}

// LimitsOf gives the limits of a configuration, nil if there are none.
func LimitsOf(c *settings.Config) *Limits {
	l := &Limits{Sum{c.MaxMemories, c.MaxBytes}, Sum{c.MaxSessionMemories, c.MaxSessionBytes}, c.AtLimit}
	if l.All == (Sum{}) && l.Session == (Sum{}) {
		return nil
	}
	return l
}

// Effect is what an operation does to the sums.
type Effect struct {
	Was, Is               Sum
	WasSession, IsSession string
}

// Demand is what a commit adds to the store or to a session.
type Demand struct {
	Session string // "" : the store
	Limit   Sum
	Add     Sum
	Have    Sum
}

// Over is by how much the demand passes its limit.
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

// Never reports whether it passes its limit also where there is nothing else.
func (d *Demand) Never() bool {
	return d.Limit.N > 0 && d.Add.N > d.Limit.N || d.Limit.Bytes > 0 && d.Add.Bytes > d.Limit.Bytes
}

// Within are the conditions that what is put beside it leaves the room that it needs.
// before are the totals from before the look.
func (d *Demand) Within(before Sum) (list []wal.Precondition) {
	add := func(key string, before, room int64) {
		list = append(list, wal.Precondition{Key: key, LSN: uint64(before), Most: uint64(min(room, state.MostPuts))})
	}
	if d.Limit.N > 0 && d.Add.N > 0 {
		add(state.PutsKey(d.Session), before.N, d.Limit.N-d.Have.N-d.Add.N)
	}
	if d.Limit.Bytes > 0 && d.Add.Bytes > 0 {
		add(state.PutBytesKey(d.Session), before.Bytes, d.Limit.Bytes-d.Have.Bytes-d.Add.Bytes)
	}
	return list
}

// Grows reports whether it adds something that is limited.
func (d *Demand) Grows() bool {
	return d.Limit.N > 0 && d.Add.N > 0 || d.Limit.Bytes > 0 && d.Add.Bytes > 0
}

// Watch begins to count what is put.
func (cs *Counts) Watch() {
	cs.watching.Do(func() {
		cs.engine.State().WatchPuts()
		cs.putsFrom.Store(cs.engine.Log().Read())
	})
}

// PutTotals are the running totals of what was put into a session, or into the store.
func (cs *Counts) PutTotals(session string) Sum {
	return Sum{int64(cs.engine.State().PutCount(session)), int64(cs.engine.State().PutSize(session))}
}

// Refusal is the error of a write that a limit does not admit.
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
