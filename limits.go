package varve

import (
	"strings"

	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
)

// How a limit holds though several processes write. Whoever writes looks at the tally
// and names, as a precondition of the commit, something that fails if others may have
// used up the room in between:
//
//   - There is room: that no more was put since the look, into the store or into the
//     session, than this room allows (state.PutsKey, state.PutBytesKey). Nobody disturbs
//     anybody as long as all that is under way at once fits; what does not looks again,
//     and each time another one got through.
//   - There is none, and others make room: the versions of those that go, in the same
//     commit. It adds no more than it takes away, so nothing needs to be known of the sum.
//   - There is none: the answer is a refusal, true of the moment of the look.

// limits are those of config.json that hold now.
type limits struct {
	all, session sum // 0: none
	at           string
}

func storeLimits(c *settings.Config) *limits {
	l := &limits{sum{c.MaxMemories, c.MaxBytes}, sum{c.MaxSessionMemories, c.MaxSessionBytes}, c.AtLimit}
	if l.all == (sum{}) && l.session == (sum{}) {
		return nil
	}
	return l
}

// effect is what an operation does to the sums.
type effect struct {
	was, is               sum
	wasSession, isSession string
}

// demand is what a commit adds to the store or to a session.
type demand struct {
	session string // "" : the store
	limit   sum
	add     sum
	have    sum
}

// over is by how much the demand passes its limit.
func (d *demand) over() sum {
	var o sum
	if d.limit.n > 0 && d.add.n > 0 {
		o.n = max(0, d.have.n+d.add.n-d.limit.n)
	}
	if d.limit.bytes > 0 && d.add.bytes > 0 {
		o.bytes = max(0, d.have.bytes+d.add.bytes-d.limit.bytes)
	}
	return o
}

// within are the conditions that what is put beside it leaves the room that it needs.
// before are the totals from before the look.
func (d *demand) within(before sum) (list []wal.Precondition) {
	add := func(key string, before, room int64) {
		list = append(list, wal.Precondition{Key: key, LSN: uint64(before), Most: uint64(min(room, state.MostPuts))})
	}
	if d.limit.n > 0 && d.add.n > 0 {
		add(state.PutsKey(d.session), before.n, d.limit.n-d.have.n-d.add.n)
	}
	if d.limit.bytes > 0 && d.add.bytes > 0 {
		add(state.PutBytesKey(d.session), before.bytes, d.limit.bytes-d.have.bytes-d.add.bytes)
	}
	return list
}

// grows says that it adds something that is limited.
func (d *demand) grows() bool {
	return d.limit.n > 0 && d.add.n > 0 || d.limit.bytes > 0 && d.add.bytes > 0
}

// watchPuts begins to count what is put.
func (cs *counts) watchPuts() {
	cs.watching.Do(func() {
		cs.engine.State.WatchPuts()
		cs.putsFrom.Store(cs.engine.Log.Read())
	})
}

// putTotals are the running totals of what was put into a session, or into the store.
func (cs *counts) putTotals(session string) sum {
	return sum{int64(cs.engine.State.PutCount(session)), int64(cs.engine.State.PutSize(session))}
}

func (d *demand) refusal() error {
	o := d.over()
	e := &errs.LimitError{Session: d.session, What: "memories", Setting: "max_memories", Limit: d.limit.n, Have: d.have.n, Add: d.add.n}
	if o.n == 0 {
		e.What, e.Setting, e.Limit, e.Have, e.Add = "bytes", "max_bytes", d.limit.bytes, d.have.bytes, d.add.bytes
	}
	if d.session != "" {
		e.Setting = strings.Replace(e.Setting, "max_", "max_session_", 1)
	}
	return e
}
