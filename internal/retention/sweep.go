package retention

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/view/counts"
	"github.com/varve-db/varve/wal"
)

// An expired memory is absent at once, for every read. It is deleted, through the log like any other, at
// least an hour later: a clock that jumps must not delete memories that it makes look old. So the time
// of day alone does not decide. wal/expiry has a time at which some process saw that something was
// expired (see SweepNote). Only what was expired by then is deleted, and only when an hour has passed
// since then, both by the time of day and by the machine's uptime, which setting a clock does not
// change; then the note gets the present time of day. A note of a time in the future means that the
// clock was set back, and is replaced as well.
//
// So a memory that expires is deleted between one and two hours later. A clock that jumps ahead and is
// corrected within an hour deletes nothing, whichever processes see it and however often it jumps. After
// another boot the hour starts again; if no uptime is known, one process has to see it pass. max_age of
// config.json follows the same rule, and so does history_days, with a note of its own (wal/aged,
// HistoryCut).

const (
	SweepMost = 1000 // maximum number of memories that are deleted at a time
)

// Sweeper has the state of deleting expired memories. If several processes sweep at the same time, only one of them
// deletes.
type Sweeper struct {
	mu   sync.Mutex
	aged time.Time // when this process last searched for memories older than max_age and found no more
	from string    // place, in the order by age, up to which it has searched
}

// SweepExpired deletes some of the memories and other documents that expired long enough ago. It is cheap if there is
// nothing to delete.
func (r *Retention) SweepExpired(ctx context.Context) error {
	s := &r.sweeper
	if r.engine.Env().ReadOnly || r.engine.Log().Damage() != nil || !s.mu.TryLock() {
		return nil
	}
	defer s.mu.Unlock()
	if r.engine.Settings().Unknown() {
		return nil
	}
	now, age := r.engine.Env().Clock(), r.engine.Settings().Now().Age()
	if now.Sub(s.aged) < engine.ClockGrace && !now.Before(s.aged) {
		age = 0 // checked a short while ago
	}
	if err := r.engine.CatchUp(ctx); err != nil {
		return err
	}
	others := false
	if r.others != nil {
		var err error
		if others, err = r.others.Expired(ctx, now); err != nil {
			return err
		}
	}
	if age == 0 && !others && !r.engine.AnyExpiry(ctx) {
		return nil
	}
	note, err := r.Expiry.Read()
	if err != nil {
		return err
	}
	cut := note.Cut
	if !cut.After(now) {
		if over, err := r.engine.Expiring().Due(ctx, now, 1); err != nil || len(over) == 0 && age == 0 && !others {
			return err
		}
	}
	over, renew := r.Expiry.judge(&note, now)
	if !renew.IsZero() {
		return r.Expiry.Note(renew)
	}
	if !over {
		return nil
	}
	ids, err := r.engine.Expiring().Due(ctx, cut, SweepMost)
	if err != nil {
		return err
	}
	n, err := r.deleteIf(ctx, r.commits.Upkeep, wal.CauseExpired, ids,
		func(line *index.Entry) bool { return !line.ExpiresAt.IsZero() && !line.ExpiresAt.After(cut) })
	if others && err == nil && len(ids) < SweepMost {
		more := 0
		more, err = r.others.DeleteExpired(ctx, cut, SweepMost)
		n, others = n+more, more == SweepMost
	}
	if n > 0 {
		r.engine.Env().Event(env.Event{Kind: env.EventSwept, Count: n, Note: "expired", Writer: r.engine.WriterNow(ctx)})
	}
	if err != nil || len(ids) == SweepMost || others {
		return err
	}
	if age > 0 {
		if more, err := r.sweepAged(ctx, cut.Add(-age)); more || err != nil {
			return err
		}
		s.aged, s.from = now, ""
	}
	return r.Expiry.Note(now)
}

// SweepUp does the same as SweepExpired for callers that cannot return an error. It logs the error instead.
func (r *Retention) SweepUp(ctx context.Context) {
	if err := r.SweepExpired(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, errs.ErrClosed) {
		r.engine.Env().Logger.Warn("deleting expired documents failed", "err", err)
	}
}

// sweepAged deletes some of the memories whose last write was before cutoff. more reports whether there may be
// more such memories.
func (r *Retention) sweepAged(ctx context.Context, cutoff time.Time) (more bool, err error) {
	f := engine.Filters{Updated: engine.Span{Until: cutoff}, After: r.sweeper.from, Expired: true}
	var ids []string
	for l, err := range r.engine.Lines(ctx, r.engine.Kinds().Memories, f) {
		if errors.Is(err, errs.ErrCorrupt) {
			continue // verify reports it
		}
		if err != nil {
			return false, err
		}
		if counts.Stays(l.ID) {
			continue
		}
		if ids = append(ids, l.ID); len(ids) == SweepMost {
			break
		}
	}
	if len(ids) == 0 {
		return false, nil
	}
	n, err := r.deleteIf(ctx, r.commits.Upkeep, wal.CauseExpired, ids,
		func(line *index.Entry) bool { return line.UpdatedAt.Before(cutoff) })
	if n > 0 {
		r.engine.Env().Event(env.Event{Kind: env.EventSwept, Count: n, Note: "older than max_age",
			Writer: r.engine.WriterNow(ctx)})
	}
	r.sweeper.from = ids[len(ids)-1]
	return len(ids) == SweepMost, err
}

// committing is the type of the methods Commit and Upkeep of commit.Committer, which commit operations.
type committing func(ctx context.Context, ops []commit.Op, seen commit.Reads, listed wal.LSN) error

// deleteIf deletes those of the given memories for which match returns true at the time of the commit, and returns the
// number of deleted memories. It commits the deletions with commitOps, and records cause as their reason (see package
// wal). If they do not fit into one commit, deleteIf makes several commits.
func (r *Retention) deleteIf(ctx context.Context, commitOps committing, cause uint8, ids []string,
	match func(line *index.Entry) bool) (int, error) {
	if len(ids) == 0 {
		return 0, nil
	}
	ops := make([]commit.Op, len(ids))
	for i, id := range ids {
		ops[i] = commit.Op{ID: id, When: match, Cause: cause}
	}
	err := commitOps(ctx, ops, nil, 0)
	if errors.Is(err, errs.ErrBatchTooLarge) && len(ids) > 1 {
		n, err := r.deleteIf(ctx, commitOps, cause, ids[:len(ids)/2], match)
		if err != nil {
			return n, err
		}
		m, err := r.deleteIf(ctx, commitOps, cause, ids[len(ids)/2:], match)
		return n + m, err
	}
	if err != nil {
		return 0, err
	}
	n := 0
	for i := range ops {
		if ops[i].Written {
			n++
		}
	}
	return n, nil
}
