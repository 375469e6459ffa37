package flush

import (
	"context"
	"errors"
	"time"

	"github.com/varve-db/varve/internal/diskspace"
	"github.com/varve-db/varve/internal/views"
	"github.com/varve-db/varve/wal"
)

// FlushEvery is the longest time until a change is written to its document file. During a purge it can take longer: see
// yields.
const FlushEvery = time.Second

// RestFactor is the length of the rest after a round, as a multiple of the length of the round; RestAfter has the
// exceptions. During a rest writers have the disk: writers have to wait for the log, but not for the files. All
// processes rest at the same time. When each process rested separately, four processes wrote files during half of a
// burst, and their puts reached only 36,000/s instead of 66,000/s.
const RestFactor = 9

// RestAfter returns the time for which the flushers rest after a round that took the time took. The rest is RestFactor
// times as long as the round, but not longer than FlushEvery. wrote reports whether any process wrote during the
// round, and unfinished whether the round left something to do. full is the backlog relative to its limit.
//
// If unfinished is true, a larger backlog makes the rest shorter. There is then no rest at all in two cases: full is
// slowFrom or more, so that writers are slowed, or wrote is false, so that the burst is over and no writer needs the
// disk.
func RestAfter(took time.Duration, wrote, unfinished bool, full float64) time.Duration {
	if unfinished && (!wrote || full >= slowFrom) {
		return 0
	}
	rest := min(RestFactor*took, FlushEvery)
	if unfinished {
		rest = time.Duration(float64(rest) * (1 - full/slowFrom))
	}
	return rest
}

// shortRest is the shortest remaining time of a rest that ends early when writers are slowed down. If less time
// remains, the rest continues. A flusher that finds another process flushing rests for less than shortRest.
const shortRest = RestFactor * 2 * time.Millisecond

// Resting returns the remaining time of the rest that a process has announced to all processes. It ignores a rest
// longer than FlushEvery.
func (fl *Flusher) Resting() time.Duration {
	if fl.uptime == nil {
		return 0
	}
	left := time.Duration(fl.engine.Log().Pace().Rest())*time.Millisecond - fl.uptime()
	if left > FlushEvery {
		return 0
	}
	return max(left, 0)
}

// Run flushes in the background when enough has changed, and once a second if any process has changed something. It
// also records that this process is alive. When ctx ends, Run returns after the current round. It also returns when
// the store's folder was replaced. When the context rounds ends, the current round is canceled; a later round writes
// the files of the canceled round again.
func (fl *Flusher) Run(ctx, rounds context.Context) {
	ctx = Unpaced(ctx)
	tick := time.NewTicker(FlushEvery)
	defer tick.Stop()
	var beat time.Time
	rest := time.NewTimer(time.Hour)
	defer rest.Stop()
	kick := fl.kick // nil during a rest, which ends early when writers are slowed (urge)
	owed := false   // a second has passed during the rest
	var rested time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-kick:
		case <-fl.urge:
			if fl.full() < slowFrom || kick == nil && time.Until(rested) < shortRest {
				continue
			}
			kick = fl.kick
		case <-rest.C:
			kick = fl.kick
			few := fl.unflushed.Load() < int64(fl.engine.Settings().Now().FlushAfter())
			if few && !owed && !fl.More.Load() && !fl.wordsDue {
				continue
			}
		case <-tick.C:
			fl.engine.Settings().Reread()
			if now := fl.engine.Env().Clock(); now.Sub(beat) >= wal.HeartbeatEvery || now.Before(beat) {
				beat = now
				fl.beat(ctx)
			}
			fl.host.CheckParked(ctx)
			owed = true
			if kick == nil {
				continue // the rest after a round is not over
			}
		}
		if fl.engine.Log().Folder().Replaced() != nil { // nothing is written any more
			return
		}
		if left := fl.Resting(); left > 0 && fl.full() < slowFrom {
			kick = nil
			rest.Reset(left)
			rested = time.Now().Add(left)
			continue
		}
		owed = false
		if ctx.Err() != nil { // select may not have noticed
			return
		}
		if pause, did := fl.flushBackground(ctx, rounds); did {
			kick = nil
			rest.Reset(pause)
			rested = time.Now().Add(pause)
		}
	}
}

// BeatInline records, at most once in every wal.HeartbeatEvery, that this process is alive. If the store has a
// background goroutine, BeatInline does nothing, because that goroutine records it.
func (fl *Flusher) BeatInline() {
	if !fl.engine.Env().NoBackground && !fl.engine.Env().System.Inline {
		return
	}
	now := fl.engine.Env().Clock().UnixNano()
	if last := fl.lastBeat.Load(); now-last >= int64(wal.HeartbeatEvery) && fl.lastBeat.CompareAndSwap(last, now) {
		if err := fl.engine.Log().Processes().Heartbeat(); err != nil {
			fl.engine.Env().Logger.Warn("heartbeat", "err", err)
		}
	}
}

// RoundInline counts a commit of a store that does all work in the callers' goroutines (System.Inline). After every
// System.Rounds commits it runs a background round in the caller's goroutine; if System.Rounds is 0, it runs none.
func (fl *Flusher) RoundInline(ctx context.Context) {
	if n := fl.engine.Env().System.Rounds; n > 0 && fl.engine.Env().System.Inline && fl.commits.Add(1)%n == 0 {
		fl.FlushBackground(ctx)
	}
}

func (fl *Flusher) beat(ctx context.Context) {
	if err := fl.engine.Log().Processes().Heartbeat(); err != nil {
		fl.engine.Env().Logger.Warn("heartbeat", "err", err)
	}
	diskspace.Watch(fl.engine)
	fl.host.Upkeep(ctx)
}

// FlushBackground runs a round if there is anything to do, no other process is flushing, and the round need not
// wait for a purge. It returns the time for which to rest afterwards. If it ran a round, it announces this rest to
// all processes. due is false, and no rest is needed, if there was nothing to do or the log is damaged. due is
// true if there was something to do, even if no round ran.
func (fl *Flusher) FlushBackground(ctx context.Context) (rest time.Duration, due bool) {
	return fl.flushBackground(ctx, ctx)
}

// flushBackground does the same as FlushBackground, and has the same results, but with two contexts: when ctx ends, no
// further round begins; when rounds ends, the current round is canceled too.
func (fl *Flusher) flushBackground(ctx, rounds context.Context) (rest time.Duration, due bool) {
	durable := fl.engine.Log().Durable()
	if fl.engine.Log().Damage() != nil ||
		fl.engine.Log().Flushed() >= durable && !fl.engine.Log().Notes().Distrusted() && !fl.engine.Damaged().Load() &&
			!fl.views.Due() && !fl.overdue() && !fl.owes.Load() {
		fl.unflushed.Store(0) // another process has flushed
		return 0, false
	}
	if fl.yields() {
		return RestAfter(time.Millisecond, true, false, 0), true
	}
	held, err := fl.engine.Log().TryLockFlush()
	if err != nil {
		fl.engine.Env().Logger.Warn("flush", "err", err)
	}
	if held == nil {
		return RestAfter(time.Millisecond, true, false, 0), true // another process is flushing
	}
	began := time.Now()
	views.Limit(fl.views, held, fl.mostAtOnce())
	err = fl.flushOn(ctx, rounds, held, MergeWhenDue)
	views.Limit(fl.views, held, 0)
	fl.wordsDue = views.Hurry(fl.views, held)
	wrote, more := fl.engine.Log().Durable() != durable, err == nil && fl.More.Load()
	fl.Quiet.Store(!wrote)
	rest = RestAfter(max(time.Since(began), time.Millisecond), wrote, more, fl.full())
	switch {
	case err == nil && fl.wordsDue:
		rest = shortRest // also if files are left: a process that waits for the lock needs a moment to take it
	case err == nil && fl.overdue():
		rest = min(rest, shortRest)
	}
	if fl.uptime != nil {
		if err := fl.engine.Log().Pace().SetRest(held, (fl.uptime() + rest).Milliseconds()); err != nil {
			fl.engine.Env().Logger.Warn("flush", "err", err)
		}
	}
	held.Unlock()
	if err != nil && !errors.Is(err, context.Canceled) && !fl.engine.Env().System.Inline {
		fl.pause(ctx)
	}
	return rest, true
}

// yielded records the purge for which the background rounds last left flush.lock free, and the time at which they began
// to do so.
type yielded struct {
	to    uint64
	since time.Time
}

// yields reports whether background rounds leave flush.lock to a purge that is running in any process. The purge writes
// all earlier changes to files, and each background round makes the purge longer: the purge must overwrite the files
// that the round replaces, and the round writes its part of the index twice. Measured with four busy processes: four to
// eight rounds and 10,000 replaced files during a purge. yields returns false once writers are slowed by the backlog,
// or when a purge has not ended within the lock wait, because the process of the purge may have been stopped.
func (fl *Flusher) yields() bool {
	if fl.full() >= slowFrom {
		return false
	}
	now := fl.engine.Env().Clock()
	switch purge := fl.engine.Log().Purges().Living(); purge {
	case 0:
		fl.yielded.to = 0
		return false
	case fl.yielded.to:
	default:
		fl.yielded.to, fl.yielded.since = purge, now
	}
	waited := now.Sub(fl.yielded.since)
	return waited >= 0 && waited < fl.engine.Env().LockWait
}

// pause waits before the next attempt after failed flushes. The wait grows with the number of failures.
func (fl *Flusher) pause(ctx context.Context) {
	t := time.NewTimer(min(time.Duration(fl.failed.Load())*FlushEvery, 30*time.Second))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
