package retention

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
)

// SweepOptions select the sessions that SweepSessions deletes: those that match IdleFor, Keep, or both. At least one
// of the two must be set.
type SweepOptions struct {
	IdleFor time.Duration // select sessions in which nothing was written for this time; 0: none
	Keep    int           // select all sessions except this many that were written to last; 0: none
	Apply   bool          // delete the sessions; otherwise they are only listed
}

// Swept is a session that SweepSessions has selected, and the result of deleting it.
type Swept struct {
	Session Session // the session as it was when it was selected
	Deleted int64   // number of memories that were deleted
	Spared  bool    // the session was used after it was selected, and is kept
	Doubted bool    // the session is unused only by a clock that may be wrong, and is kept
}

// idleness decides which sessions have been unused for long enough. As for expired memories (sweep.go), one wrong
// reading of the clock must not select sessions. So a session must have been unused by two clocks: by the time of day
// (wall), and by a second clock that does not jump when the time of day is set (now, see Scopes.Now). The second clock
// began with a reading of the time of day, at the time doubted, and for an hour that reading is in doubt. During this
// hour, the second clock counts only for sessions that were written to after doubted. For all other sessions newest
// takes its place: the time of the last write to any of them, which is an earlier and independent reading of the time
// of day.
type idleness struct {
	wall, now time.Time // by the clock, and by the clock that does not jump
	doubted   time.Time // time since which now is in doubt; zero if it is not in doubt
	newest    time.Time // last write to any session before doubted
}

func (r *Retention) idleness(all []Session) idleness {
	i := idleness{wall: r.engine.Env().Clock()}
	i.now, i.doubted = r.uptime.Now()
	for j := range all {
		if last := all[j].Last; last.Before(i.doubted) && last.After(i.newest) {
			i.newest = last
		}
	}
	return i
}

// unused reports whether a session has been unused for the duration idleFor by the time of day. doubted is true if the
// time of day may be wrong, because the session has not been unused for that long by the second clock. If idleFor is
// 0, both results are false.
func (i *idleness) unused(s *Session, idleFor time.Duration) (unused, doubted bool) {
	if idleFor == 0 || i.wall.Sub(s.Last) < idleFor {
		return false, false
	}
	now := i.now
	if s.Last.Before(i.doubted) {
		now = i.newest
	}
	return true, now.Sub(s.Last) < idleFor
}

// SweepSessions deletes the sessions that o selects, and returns them, with the result for each. It begins with the
// session that has been unused for the longest time. If o.Apply is false, it deletes nothing.
func (r *Retention) SweepSessions(ctx context.Context, o SweepOptions) ([]Swept, error) {
	switch {
	case o.IdleFor < 0:
		return nil, &errs.FieldError{Field: "IdleFor", Value: o.IdleFor.String(),
			Err: fmt.Errorf("negative: %w", errs.ErrInvalid)}
	case o.Keep < 0:
		return nil, &errs.FieldError{Field: "Keep", Value: fmt.Sprint(o.Keep),
			Err: fmt.Errorf("negative: %w", errs.ErrInvalid)}
	case o.IdleFor == 0 && o.Keep == 0:
		return nil, &errs.FieldError{Field: "SweepOptions",
			Err: fmt.Errorf("give the idle time or the number of sessions to keep: %w", errs.ErrInvalid)}
	}
	if o.Apply {
		if err := r.engine.Writable(); err != nil {
			return nil, err
		}
		r.counts.Watch()
	}
	var all []Session
	for s, err := range engine.Reading(ctx, r.engine, func(yield func(Session, error) bool) { r.Each(ctx, yield) }) {
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	slices.SortStableFunc(all, func(a, b Session) int { return a.Last.Compare(b.Last) })
	surplus, idle := 0, r.idleness(all)
	if o.Keep > 0 {
		surplus = max(0, len(all)-o.Keep)
	}
	var list []Swept
	for i, s := range all {
		unused, doubted := idle.unused(&s, o.IdleFor)
		if i >= surplus && !unused {
			break // the others were used later
		}
		w := Swept{Session: s, Doubted: i >= surplus && doubted}
		if o.Apply && !w.Doubted {
			var err error
			if w, err = r.sweepSession(ctx, s); err != nil {
				return append(list, w), fmt.Errorf("session %s: %w", human.Quote(s.ID), err)
			}
		}
		list = append(list, w)
	}
	return list, nil
}

// sweepTries is the maximum number of times that SweepSessions tries to delete a session. An attempt fails if the
// session's counter of puts has changed. Other sessions share this counter (state.PutsKey), so the next attempt checks
// the session itself again.
const sweepTries = 100

func (r *Retention) sweepSession(ctx context.Context, s Session) (Swept, error) {
	w := Swept{Session: s}
	if err := r.engine.BeginUse(); err != nil {
		return w, err
	}
	defer r.engine.EndUse()
	for range sweepTries {
		if err := r.engine.CatchUp(ctx); err != nil {
			return w, err
		}
		at, unused := r.engine.Log().Applied(), commit.Reads{}
		unused[state.PutsKey(s.ID)] = r.engine.State().PutCount(s.ID) // before the look
		ops, same, err := r.sessionAsIs(ctx, s)
		if err != nil {
			return w, err
		}
		if !same {
			w.Spared = true
			return w, nil
		}
		listed := wal.LSN(0)
		if at < r.counts.PutsFrom().Load() {
			listed = at // commits in progress at the beginning may not be recorded
		}
		n, err := r.deleteUnused(ctx, ops, unused, listed)
		w.Deleted += int64(n)
		if !errors.Is(err, errs.ErrConflict) {
			return w, err
		}
		if w.Deleted > 0 {
			break
		}
	}
	w.Spared = true
	return w, nil
}

// sessionAsIs prepares the deletion of all memories of a session in their present versions. same is false if the
// session has changed since it was read as s.
func (r *Retention) sessionAsIs(ctx context.Context, s Session) (ops []commit.Op, same bool, err error) {
	is, now := Session{ID: s.ID}, r.engine.Env().Clock()
	for l, err := range r.engine.Lines(ctx, r.engine.Kinds().Memories, engine.Filters{Session: &s.ID, Expired: true}) {
		if err != nil {
			return nil, false, err
		}
		o, v := commit.Op{ID: l.ID}, l.Line.Version
		if l.Line.ExpiresAt.IsZero() || now.Before(l.Line.ExpiresAt) {
			is.add(&l.Line)
			o.Conds.Version = &v
		} else {
			o.When = func(line *index.Entry) bool { return line.Version == v } // false if there is no memory
		}
		ops = append(ops, o)
	}
	return ops, is.Memories <= s.Memories && is.Last.Equal(s.Last), nil
}

// deleteUnused deletes the memories of a session with the deletions ops, and returns the number of deleted memories.
// It commits as many deletions as fit into one commit, and the rest in further commits. unused has the session's
// counter of puts: the first commit fails with a conflict if the counter has changed, because something was put into
// the session.
func (r *Retention) deleteUnused(ctx context.Context, ops []commit.Op, unused commit.Reads,
	listed wal.LSN) (done int, err error) {
	for len(ops) > 0 {
		part := ops[:r.deletable(len(ops), func(i int) string { return ops[i].ID })]
		err := r.commits.Commit(ctx, part, unused, listed)
		for errors.Is(err, errs.ErrBatchTooLarge) && len(part) > 1 { // too large with the assemblies that change along
			part = part[:len(part)/2]
			err = r.commits.Commit(ctx, part, unused, listed)
		}
		if err != nil {
			return done, err
		}
		for i := range part {
			if part[i].Written {
				done++
			}
		}
		ops, unused, listed = ops[len(part):], nil, 0
	}
	return done, nil
}
