package varve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/wal"
)

// demandsOf are what the prepared operations add, the store's last.
func demandsOf(l *limits, ops []op, done []prepared) []*demand {
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
func (cm *committer) keepLimits(ctx context.Context, w *work, ops []op, seen reads) ([]op, error) {
	l := storeLimits(cm.engine.Settings.Now())
	if l == nil {
		return ops, nil
	}
	for i := range w.prepared {
		if w.prepared[i].err != nil {
			return ops, nil // which prepare says
		}
	}
	list := demandsOf(l, ops, w.prepared)
	if len(list) == 0 {
		return ops, nil
	}
	cm.counts.watchPuts()
	at := cm.engine.Log.Applied()
	var sessions []string
	before := make([]sum, len(list))
	for i, d := range list {
		before[i] = cm.counts.putTotals(d.session)
		if d.session != "" {
			sessions = append(sessions, d.session)
		}
	}
	all, in, err := cm.counts.tally.look(ctx, cm.counts, sessions)
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
			if l.at == "" || l.at == settings.AtLimitRefuse {
				return nil, d.refusal()
			}
			if ops, err = cm.evict(ctx, w, ops, seen, d, o); err != nil {
				return nil, err
			}
		}
		if !d.grows() {
			continue
		}
		if at < cm.counts.putsFrom.Load() { // what was on its way when it began may not be counted
			w.batch.Preconditions = append(w.batch.Preconditions, wal.Precondition{LSN: at})
			continue
		}
		w.batch.Preconditions = append(w.batch.Preconditions, d.within(before[i])...)
	}
	return ops, nil
}

// evict adds the deletions that make room for a demand.
func (cm *committer) evict(ctx context.Context, w *work, ops []op, seen reads, d *demand, need sum) ([]op, error) {
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
		c, err := cm.counts.evictions.next(ctx, cm.counts, d.session, func(id string) bool { _, read := seen[engine.MemoryKey(id)]; return own[id] || read })
		if err != nil {
			return nil, err
		}
		if c == nil {
			break
		}
		tries++
		o := op{kind: cm.engine.Kinds.Memories, id: c.id, evicted: true}
		p := prepared{wanted: true}
		if err := cm.prepareOne(ctx, &o, &p, w.arena(0)); err != nil && !errors.Is(err, errs.ErrNotFound) {
			cm.counts.evictions.release([]candidate{*c}, true) // another one may do
			return nil, fmt.Errorf("making room: memory %s: %w", quote(c.id), err)
		}
		if !o.written || p.precondition.LSN != c.version || d.session != "" && p.effect.wasSession != d.session {
			cm.counts.evictions.release([]candidate{*c}, true)
			continue // it was changed since
		}
		own[c.id] = true
		w.taken = append(w.taken, *c)
		ops, w.prepared = append(ops[:len(ops):len(ops)], o), append(w.prepared, p)
		freed, n = freed.plus(p.effect.was), n+1
	}
	d.add = d.add.minus(freed)
	if o := d.over(); o != (sum{}) {
		if cm.counts.evictions.busy(len(w.taken)) {
			return nil, errBusy
		}
		return nil, d.refusal()
	}
	return ops, nil
}

// errBusy says that those who may go are all taken by other commits of this process.
var errBusy = errors.New("others are making room")

// mostEvict is in one commit: a limit that was lowered is reached step by step.
const mostEvict = 1000
