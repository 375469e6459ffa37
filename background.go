package varve

import (
	"context"
	"errors"
	"time"

	"github.com/varve-db/varve/wal"
)

// flushEvery is the longest that a change waits for its file.
const flushEvery = time.Second

// restFactor is how much longer than a round the flushers let writers have the
// disk before the next one, while they write: files, unlike the log, can wait.
// It holds for all processes together. With a rest of its own for each, four
// processes put files in place for half of a burst's time, and their puts came to
// 36,000/s of the 66,000/s without.
const restFactor = 9

// restAfter is how long the flushers rest after a round that left more to do or
// not, during which somebody wrote or nobody did. When a burst is over, its files
// need not wait for anybody.
func restAfter(took time.Duration, wrote, more bool) time.Duration {
	if more && !wrote {
		return 0
	}
	return min(restFactor*took, flushEvery)
}

// resting is how much of a rest is left that a process has said for all. What lies
// farther ahead than any rest is not believed.
func (st *Store) resting() time.Duration {
	if st.flusher.uptime == nil {
		return 0
	}
	left := time.Duration(st.engine.Log.Rest())*time.Millisecond - st.flusher.uptime()
	if left > flushEvery {
		return 0
	}
	return max(left, 0)
}

// run flushes in the background: when enough has changed, and once a second if
// anything has, by whatever process; and it says that this process lives.
func (st *Store) run(ctx context.Context) {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	var beat time.Time
	rest := time.NewTimer(time.Hour)
	defer rest.Stop()
	kick := st.flusher.kick // nil during a rest
	owed := false           // a second was over during it
	for {
		select {
		case <-ctx.Done():
			return
		case <-kick:
		case <-rest.C:
			kick = st.flusher.kick
			if !owed && !st.flusher.rest.Load() && st.flusher.unflushed.Load() < int64(st.engine.Settings.Now().FlushAfter()) {
				continue
			}
		case <-tick.C:
			st.engine.Settings.Reread()
			if now := st.engine.Env.Clock(); now.Sub(beat) >= wal.HeartbeatEvery || now.Before(beat) {
				beat = now
				st.beat(ctx)
			}
			st.lookAtParked(ctx)
			owed = true
			if kick == nil {
				continue // the rest after a round is not over
			}
		}
		if left := st.resting(); left > 0 {
			kick = nil
			rest.Reset(left)
			continue
		}
		owed = false
		if pause, did := st.flushBackground(ctx); did {
			kick = nil
			rest.Reset(pause)
		}
	}
}

// BeatInline says that this process lives, where nothing runs in the background.
func (st *Store) BeatInline() {
	if !st.engine.Env.NoBackground && !st.engine.Env.System.Inline {
		return
	}
	now := st.engine.Env.Clock().UnixNano()
	if last := st.flusher.beat.Load(); now-last >= int64(wal.HeartbeatEvery) && st.flusher.beat.CompareAndSwap(last, now) {
		if err := st.engine.Log.Heartbeat(); err != nil {
			st.engine.Env.Logger.Warn("heartbeat", "err", err)
		}
	}
}

// RoundInline does what the background does where there is none, after so many commits.
func (st *Store) RoundInline(ctx context.Context) {
	if n := st.engine.Env.System.Rounds; n > 0 && st.engine.Env.System.Inline && st.flusher.commits.Add(1)%n == 0 {
		st.flushBackground(ctx)
	}
}

func (st *Store) beat(ctx context.Context) {
	if err := st.engine.Log.Heartbeat(); err != nil {
		st.engine.Env.Logger.Warn("heartbeat", "err", err)
	}
	st.watchSpace()
	if err := st.flushTouched(ctx); err != nil && ctx.Err() == nil {
		st.engine.Env.Logger.Warn("counting accesses", "err", err)
	}
	st.sweepUp(ctx)
}

// flushBackground does a round if there is anything to do and nobody is at it. It
// returns how long to rest then, which it tells all processes; did is false when there
// was nothing to do.
func (st *Store) flushBackground(ctx context.Context) (rest time.Duration, did bool) {
	durable := st.engine.Log.Durable()
	if st.engine.Log.Damage() != nil || st.engine.Log.Flushed() >= durable && !st.engine.Log.Distrusted() && !st.engine.Rotten.Load() {
		st.flusher.unflushed.Store(0) // another process has done it
		return 0, false
	}
	ok, err := st.engine.Log.TryLockFlush()
	if err != nil {
		st.engine.Env.Logger.Warn("flush", "err", err)
	}
	if !ok {
		return restAfter(time.Millisecond, true, false), true // somebody else is at it
	}
	began := time.Now()
	err = st.flushLocked(ctx, mergeWhenDue)
	wrote, more := st.engine.Log.Durable() != durable, err == nil && st.flusher.rest.Load()
	st.flusher.quiet.Store(!wrote)
	rest = restAfter(max(time.Since(began), time.Millisecond), wrote, more)
	if st.flusher.uptime != nil {
		st.engine.Log.SetRest((st.flusher.uptime() + rest).Milliseconds())
	}
	st.engine.Log.UnlockFlush()
	if err != nil && !errors.Is(err, context.Canceled) && !st.engine.Env.System.Inline {
		st.pause(ctx)
	}
	return rest, true
}

// pause keeps a flush that fails from being tried without end.
func (st *Store) pause(ctx context.Context) {
	t := time.NewTimer(min(time.Duration(st.flusher.failed.Load())*flushEvery, 30*time.Second))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// Pressure makes a writer wait while the log is too far ahead of the files.
func (st *Store) Pressure(ctx context.Context) error {
	for st.engine.Log.Backlog() > st.engine.Env.System.BacklogBytes {
		if err := st.flush(ctx, mergeWhenDue); err != nil {
			return err
		}
		if st.engine.Log.Backlog() > st.engine.Env.System.BacklogBytes {
			if err := st.flush(ctx, mergeFlush); err != nil {
				return err
			}
		}
	}
	return nil
}
