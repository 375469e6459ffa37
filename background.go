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

// run flushes in the background: when enough has changed, and once a second if
// anything has, by whatever process; and it says that this process lives.
func (st *Store) run(ctx context.Context) {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	var beat time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-st.flusher.kick:
		case <-tick.C:
			st.rereadConfig()
			if now := st.o.Clock(); now.Sub(beat) >= wal.HeartbeatEvery || now.Before(beat) {
				beat = now
				if err := st.log.Heartbeat(); err != nil {
					st.o.Logger.Warn("heartbeat", "err", err)
				}
				if err := st.flushTouched(ctx); err != nil && ctx.Err() == nil {
					st.o.Logger.Warn("counting accesses", "err", err)
				}
			}
		}
		if st.log.Damage() != nil || st.log.Flushed() >= st.log.Durable() && !st.log.Distrusted() {
			continue
		}
		ok, err := st.log.TryLockFlush()
		if err != nil {
			st.o.Logger.Warn("flush", "err", err)
		}
		if !ok {
			continue // somebody else is at it
		}
		err = st.flushLocked(ctx, mergeWhenDue)
		st.log.UnlockFlush()
		if err != nil && !errors.Is(err, context.Canceled) {
			st.pause(ctx)
		}
	}
}

// pause keeps a flush that fails from being tried without end.
func (st *Store) pause(ctx context.Context) {
	t := time.NewTimer(min(time.Duration(st.flusher.failed)*flushEvery, 30*time.Second))
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
			if err := st.flush(ctx, mergeAlways); err != nil {
				return err
			}
		}
	}
	return nil
}

func (st *Store) newID() (string, error) { return memstore.NewID(st.o.Clock(), st.rand()) }

func timeOf(line *index.Entry) time.Time { return time.UnixMicro(line.Mtime).UTC() }
