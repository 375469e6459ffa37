package varve

import (
	"context"
	"errors"
	"time"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/wal"
)

// flushEvery is the longest that a change waits for its file.
const flushEvery = time.Second

// restFactor is how much longer than a round the flusher lets writers have the
// disk before the next one, while they write: files, unlike the log, can wait.
const restFactor = 9

// restAfter is how long the flusher rests after a round that left more to do or
// not, during which somebody wrote or nobody did. When a burst is over, its files
// need not wait for anybody.
func restAfter(took time.Duration, wrote, more bool) time.Duration {
	if more && !wrote {
		return 0
	}
	return min(restFactor*took, flushEvery)
}

// run flushes in the background: when enough has changed, and once a second if
// anything has, by whatever process; and it says that this process lives.
func (st *Store) run(ctx context.Context) {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	var beat time.Time
	rest := time.NewTimer(time.Hour)
	defer rest.Stop()
	kick := st.flusher.kick
	for {
		select {
		case <-ctx.Done():
			return
		case <-kick:
		case <-rest.C:
			kick = st.flusher.kick
			if !st.flusher.rest.Load() && st.flusher.unflushed.Load() < int64(st.flushThreshold()) {
				continue
			}
		case <-tick.C:
			st.rereadConfig()
			if now := st.o.Clock(); now.Sub(beat) >= wal.HeartbeatEvery || now.Before(beat) {
				beat = now
				st.beat(ctx)
			}
			st.lookAtParked(ctx)
			if kick == nil {
				continue // the rest after a round is not over
			}
		}
		before := st.log.Durable()
		took, more := st.flushBackground(ctx)
		wrote := st.log.Durable() != before
		st.flusher.quiet.Store(!wrote)
		if took > 0 {
			kick = nil
			rest.Reset(restAfter(took, wrote, more))
		}
	}
}

// beatInline says that this process lives, where nothing runs in the background.
func (st *Store) beatInline() {
	if !st.o.NoBackground && !st.o.System.Inline {
		return
	}
	now := st.o.Clock().UnixNano()
	if last := st.flusher.beat.Load(); now-last >= int64(wal.HeartbeatEvery) && st.flusher.beat.CompareAndSwap(last, now) {
		if err := st.log.Heartbeat(); err != nil {
			st.o.Logger.Warn("heartbeat", "err", err)
		}
	}
}

func (st *Store) beat(ctx context.Context) {
	if err := st.log.Heartbeat(); err != nil {
		st.o.Logger.Warn("heartbeat", "err", err)
	}
	st.watchSpace()
	if err := st.flushTouched(ctx); err != nil && ctx.Err() == nil {
		st.o.Logger.Warn("counting accesses", "err", err)
	}
	st.sweepUp(ctx)
}

// flushBackground does a round if there is anything to do and nobody is at it,
// and returns how long it took and whether it left something to do.
func (st *Store) flushBackground(ctx context.Context) (took time.Duration, more bool) {
	if st.log.Damage() != nil || st.log.Flushed() >= st.log.Durable() && !st.log.Distrusted() && !st.flusher.rotten.Load() {
		return 0, false
	}
	began := time.Now()
	ok, err := st.log.TryLockFlush()
	if err != nil {
		st.o.Logger.Warn("flush", "err", err)
	}
	if !ok {
		return time.Millisecond, false // somebody else is at it
	}
	err = st.flushLocked(ctx, mergeWhenDue)
	st.log.UnlockFlush()
	if err != nil && !errors.Is(err, context.Canceled) {
		st.pause(ctx)
	}
	return max(time.Since(began), time.Millisecond), err == nil && st.flusher.rest.Load()
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

// pressure makes a writer wait while the log is too far ahead of the files.
func (st *Store) pressure(ctx context.Context) error {
	for st.log.Backlog() > st.o.System.BacklogBytes {
		if err := st.flush(ctx, mergeWhenDue); err != nil {
			return err
		}
		if st.log.Backlog() > st.o.System.BacklogBytes {
			if err := st.flush(ctx, mergeFlush); err != nil {
				return err
			}
		}
	}
	return nil
}

func (st *Store) newID() (string, error) { return memstore.NewID(st.o.Clock(), st.rand()) }

func timeOf(line *index.Entry) time.Time { return time.UnixMicro(line.Mtime).UTC() }
