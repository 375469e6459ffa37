package varve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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

// mostEvict is in one commit: a limit that was lowered is reached step by step.
const mostEvict = 1000

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

// demands are what the prepared operations add, the store's last.
func (l *limits) demands(ops []op, done []prepared) []*demand {
	all, in := sum{}, map[string]sum{}
	for i := range ops {
		if !done[i].wanted || !ops[i].written || ops[i].group || ops[i].conds.unlimited {
			continue
		}
		e := &done[i].effect
		all = all.plus(e.is).minus(e.was)
		in[e.wasSession] = in[e.wasSession].minus(e.was)
		in[e.isSession] = in[e.isSession].plus(e.is)
	}
	var list []*demand
	if l.session != (sum{}) {
		for _, s := range slices.Sorted(maps.Keys(in)) {
			if d := (&demand{session: s, limit: l.session, add: in[s]}); s != "" && d.grows() {
				list = append(list, d)
			}
		}
	}
	if d := (&demand{limit: l.all, add: all}); d.grows() {
		list = append(list, d)
	}
	return list
}

// keepLimits adds to a batch what keeps it within the store's limits: preconditions, and
// deletions of what makes room, which it returns behind the operations.
func (st *Store) keepLimits(ctx context.Context, w *work, ops []op, seen reads) ([]op, error) {
	l := storeLimits(st.settings.Now())
	if l == nil {
		return ops, nil
	}
	for i := range w.prepared {
		if w.prepared[i].err != nil {
			return ops, nil // which prepare says
		}
	}
	list := l.demands(ops, w.prepared)
	if len(list) == 0 {
		return ops, nil
	}
	st.watchPuts()
	at := st.log.Applied()
	var sessions []string
	before := make([]sum, len(list))
	for i, d := range list {
		before[i] = st.putTotals(d.session)
		if d.session != "" {
			sessions = append(sessions, d.session)
		}
	}
	all, in, err := st.tally.look(ctx, st, sessions)
	if err != nil {
		return nil, err
	}
	given := len(ops)
	for i, d := range list {
		if d.have = all; d.session != "" {
			d.have = in[d.session]
		}
		for _, p := range w.prepared[given:len(ops)] { // what goes already makes room here as well
			if d.session == "" || d.session == p.effect.wasSession {
				d.add = d.add.minus(p.effect.was)
			}
		}
		if o := d.over(); o != (sum{}) {
			if l.at == "" || l.at == AtLimitRefuse {
				return nil, d.refusal()
			}
			if ops, err = st.evict(ctx, w, ops, seen, d, o); err != nil {
				return nil, err
			}
		}
		if !d.grows() {
			continue
		}
		if at < st.putsFrom.Load() { // what was on its way when it began may not be counted
			w.batch.Preconditions = append(w.batch.Preconditions, wal.Precondition{LSN: at})
			continue
		}
		w.batch.Preconditions = append(w.batch.Preconditions, d.within(before[i])...)
	}
	return ops, nil
}

// watchPuts begins to count what is put.
func (st *Store) watchPuts() {
	st.watching.Do(func() {
		st.state.WatchPuts()
		st.putsFrom.Store(st.log.Read())
	})
}

// putTotals are the running totals of what was put into a session, or into the store.
func (st *Store) putTotals(session string) sum {
	return sum{int64(st.state.PutCount(session)), int64(st.state.PutSize(session))}
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

// evict adds the deletions that make room for a demand.
func (st *Store) evict(ctx context.Context, w *work, ops []op, seen reads, d *demand, need sum) ([]op, error) {
	own := make(map[string]bool, len(ops))
	for i := range ops {
		if !ops[i].group {
			own[ops[i].id] = true
		} else if a := ops[i].assembly; a != nil {
			for _, id := range a.MemoryIDs { // it would come out without them
				own[id] = true
			}
		}
	}
	var freed sum
	for n, tries := 0, 0; n < mostEvict && tries < 10*mostEvict && (freed.n < need.n || freed.bytes < need.bytes); {
		c, err := st.evictions.next(ctx, st, d.session, func(id string) bool { _, read := seen[key(id)]; return own[id] || read })
		if err != nil {
			return nil, err
		}
		if c == nil {
			break
		}
		tries++
		o := op{kind: st.kinds.memories, id: c.id, evicted: true}
		p := prepared{wanted: true}
		if err := st.prepareOne(ctx, &o, &p, w.arena(0)); err != nil && !errors.Is(err, errs.ErrNotFound) {
			st.evictions.release([]candidate{*c}, true) // another one may do
			return nil, fmt.Errorf("making room: memory %s: %w", quote(c.id), err)
		}
		if !o.written || p.precondition.LSN != c.version || d.session != "" && p.effect.wasSession != d.session {
			st.evictions.release([]candidate{*c}, true)
			continue // it was changed since
		}
		own[c.id] = true
		w.taken = append(w.taken, *c)
		ops, w.prepared = append(ops[:len(ops):len(ops)], o), append(w.prepared, p)
		freed, n = freed.plus(p.effect.was), n+1
	}
	d.add = d.add.minus(freed)
	if o := d.over(); o != (sum{}) {
		if st.evictions.busy(len(w.taken)) {
			return nil, errBusy
		}
		return nil, d.refusal()
	}
	return ops, nil
}

// errBusy says that those who may go are all taken by other commits of this process.
var errBusy = errors.New("others are making room")
