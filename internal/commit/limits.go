package commit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/internal/view/counts"
	"github.com/varve-db/varve/wal"
)

// demandsOf returns the increases of the numbers and sizes of memories that the prepared operations cause and that
// limits apply to: first one Demand for each session that grows, if the limits l limit sessions, and then the Demand
// of the whole store, if the store grows.
func demandsOf(l *counts.Limits, ops []Op, done []prepared) []*counts.Demand {
	all, in := counts.Sum{}, map[string]counts.Sum{}
	for i := range ops {
		if !done[i].wanted || !ops[i].Written || ops[i].Group || ops[i].Conds.Unlimited {
			continue
		}
		e := &done[i].effect
		all = all.Plus(e.Is).Minus(e.Was)
		in[e.WasSession] = in[e.WasSession].Minus(e.Was)
		in[e.IsSession] = in[e.IsSession].Plus(e.Is)
	}
	var list []*counts.Demand
	if l.Session != (counts.Sum{}) {
		for _, s := range slices.Sorted(maps.Keys(in)) {
			if d := (&counts.Demand{Session: s, Limit: l.Session, Add: in[s]}); s != "" && d.Grows() {
				list = append(list, d)
			}
		}
	}
	if d := (&counts.Demand{Limit: l.All, Add: all}); d.Grows() {
		list = append(list, d)
	}
	return list
}

// keepLimits adds to the batch in w what keeps the store within its limits: preconditions, and deletions that
// make room. It returns the operations followed by these deletions.
func (cm *Committer) keepLimits(ctx context.Context, w *work, ops []Op, seen Reads) ([]Op, error) {
	l := counts.LimitsOf(cm.engine.Settings().Now())
	if l == nil {
		return ops, nil
	}
	for i := range w.prepared {
		if w.prepared[i].err != nil {
			return ops, nil // prepare reports the error
		}
	}
	list := demandsOf(l, ops, w.prepared)
	if len(list) == 0 {
		return ops, nil
	}
	cm.counts.Watch()
	s, err := cm.inTurn(ctx, w, list, l.At != "" && l.At != settings.AtLimitRefuse)
	if err != nil {
		return nil, err
	}
	given := len(ops)
	for i, d := range list {
		for _, p := range w.prepared[given:len(ops)] { // evictions for one demand also make room for the next
			if d.Session == "" || d.Session == p.effect.WasSession {
				d.Add = d.Add.Minus(p.effect.Was)
			}
		}
		if o := d.Over(); o != (counts.Sum{}) {
			if l.At == "" || l.At == settings.AtLimitRefuse {
				return nil, d.Refusal()
			}
			if cm.engine.Settings().Reread(); cm.engine.Settings().Unknown() {
				continue // exceed the limit until config.json is valid: nothing is deleted because of a setting that may be wrong
			}
			if ops, err = cm.evict(ctx, w, ops, seen, d, o, s.to); err != nil {
				return nil, err
			}
		}
		if !d.Grows() {
			continue
		}
		if s.at < cm.counts.PutsFrom().Load() { // entries that were being read when counting began may be missed
			w.batch.Preconditions = append(w.batch.Preconditions, wal.Precondition{LSN: s.at})
			continue
		}
		w.batch.Preconditions = append(w.batch.Preconditions, d.Within(s.before[i])...)
	}
	return ops, nil
}

// sums describes the numbers and sizes of memories that Committer.look has stored in the demands (Demand.Have). These
// numbers and sizes are as of some moment between the log positions at and to.
type sums struct {
	at, to wal.LSN
	// for each demand, the running totals of puts (Counts.PutTotals) in its session or in the store, read before Have
	before []counts.Sum
}

// look reads the number and the size of the memories that the store or the session of each demand has now, and sets
// Demand.Have to them.
func (cm *Committer) look(ctx context.Context, list []*counts.Demand) (s sums, err error) {
	s.at = cm.engine.Log().Applied()
	var sessions []string
	for _, d := range list {
		s.before = append(s.before, cm.counts.PutTotals(d.Session))
		if d.Session != "" {
			sessions = append(sessions, d.Session)
		}
	}
	all, in, err := cm.counts.Tally.Look(ctx, sessions)
	for _, d := range list {
		if d.Have = all; d.Session != "" {
			d.Have = in[d.Session]
		}
	}
	s.to = cm.engine.Log().Applied()
	return s, err
}

// inTurn calls look. If evicts is true and memories must be evicted, it first waits for the turn that the demands need
// (counts.Turn): a turn beside other commits of this process that also evict or, if the store already exceeds a limit,
// a turn alone. This commit keeps the turn until it ends. If inTurn had to wait, or has a turn alone, it calls look
// again, to see what other commits have changed meanwhile.
func (cm *Committer) inTurn(ctx context.Context, w *work, list []*counts.Demand, evicts bool) (sums, error) {
	for {
		s, err := cm.look(ctx, list)
		if err != nil || !evicts {
			return s, err
		}
		turn := counts.NoTurn
		for _, d := range list {
			turn = max(turn, d.Turn())
		}
		if turn <= w.turn {
			return s, nil
		}
		cm.counts.Evictions.Leave(w.turn)
		w.turn = counts.NoTurn
		waited, err := cm.counts.Evictions.Take(ctx, turn)
		if err != nil {
			return s, err
		}
		if w.turn = turn; !waited && turn == counts.Beside {
			return s, nil
		}
	}
}

// evict adds to the batch in w deletions of memories that make room for the demand d: memories that have, together, at
// least the number and the size need. looked is the position up to which the log was applied when the sums were read.
// The error is a *busyError if other commits evict too, so that the sums may be outdated.
func (cm *Committer) evict(ctx context.Context, w *work, ops []Op, seen Reads, d *counts.Demand, need counts.Sum,
	looked wal.LSN) ([]Op, error) {
	if d.Never() {
		return nil, d.Refusal()
	}
	own := make(map[string]bool, len(ops))
	for i := range ops {
		if !ops[i].Group {
			own[ops[i].ID] = true
		} else if a := ops[i].Assembly; a != nil {
			for _, id := range a.MemoryIDs { // else the assembly would lose these members
				own[id] = true
			}
		}
	}
	var freed counts.Sum
	busy := false
	for n, tries := 0, 0; n < mostEvict && tries < 10*mostEvict && (freed.N < need.N || freed.Bytes < need.Bytes); {
		c, taken, err := cm.counts.Evictions.Next(ctx, cm.counts, d.Session,
			func(id string) bool { _, read := seen[engine.MemoryKey(id)]; return own[id] || read })
		if err != nil {
			return nil, err
		}
		if c == nil {
			busy = taken
			break
		}
		tries++
		o := Op{kind: cm.engine.Kinds().Memories, ID: c.ID, evicted: true}
		p := prepared{wanted: true}
		if err := cm.prepareOne(ctx, &o, &p, w.arena(0), cm.engine.Env().Clock()); err != nil &&
			!errors.Is(err, errs.ErrNotFound) {
			cm.counts.Evictions.Release([]counts.Candidate{*c}, true) // another attempt may succeed
			return nil, fmt.Errorf("making room: evicting memory %s: %w", human.Quote(c.ID), err)
		}
		if !o.Written || p.precondition.LSN != c.Version || d.Session != "" && p.effect.WasSession != d.Session {
			cm.counts.Evictions.Release([]counts.Candidate{*c}, true)
			// The candidate was deleted since the look, as the overlay shows, or a newer index by now: other commits
			// make the same room, and the sum is outdated.
			if s := cm.engine.State(); !o.Written && (s.Deletion(kind.Memories.Letter, c.ID) >= looked || s.From() > looked) {
				return nil, &busyError{d.Refusal()}
			}
			continue // the candidate has changed since
		}
		own[c.ID] = true
		w.taken = append(w.taken, *c)
		ops, w.prepared = append(ops[:len(ops):len(ops)], o), append(w.prepared, p)
		freed, n = freed.Plus(p.effect.Was), n+1
	}
	d.Add = d.Add.Minus(freed)
	if o := d.Over(); o != (counts.Sum{}) {
		// A refusal is right only if no other commit interfered: candidates that others have taken may be released, and
		// if the log has moved since the tally was read, others may have deleted some of what this commit would delete.
		if busy || cm.engine.Log().Applied() != looked {
			return nil, &busyError{d.Refusal()}
		}
		return nil, d.Refusal()
	}
	return ops, nil
}

// busyError means that other commits are evicting memories, so this commit has to read the counts again. refusal is
// the error that the commit returns if this takes too long.
type busyError struct{ refusal error }

func (e *busyError) Error() string { return "other commits are making room: " + e.refusal.Error() }

// mostEvict is the maximum number of memories that one commit evicts. If a limit was lowered, and more memories have to
// be evicted to meet it, several commits evict them.
const mostEvict = 1000
