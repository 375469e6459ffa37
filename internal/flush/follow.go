package flush

import (
	"context"
	"time"

	"github.com/varve-db/varve/wal"
)

// Once an index is written the views take in what it has, and the log lets go of it. For the words of
// tens of thousands of documents that takes seconds, and files need not wait for it: a round in the
// background starts it beside the rounds that follow, under the same hold of flush.lock. Meanwhile
// no other index is written, tmp/ is not swept, and the log keeps what the views still read. A round that
// empties tmp/, or overwrites for a purge, waits for it. If an index is due by the end, it is written by the
// next hold, which begins at once. Where a purge waits for the lock there are no further rounds.

// follow does what follows a new index, or starts it.
func (fl *Flusher) follow(ctx context.Context, held *wal.Held) {
	work := func() {
		fl.Views.Round(ctx, held, true)
		if err := fl.Engine.Log.Forget(held, "index", fl.Engine.Log.Spilled()); err != nil {
			// The log keeps what it could not let go; nothing else depends on it.
			fl.Engine.Env.Logger.Warn("releasing the log", "err", err)
		}
	}
	// A feature that is raised writes the checkpoint, as each round does. What a purge has left is overwritten
	// behind the round, once the views are replaced.
	if !fl.beside || fl.dooming || fl.Engine.Log.Features()&wal.FeatureViews == 0 {
		work()
		return
	}
	done := make(chan struct{})
	fl.following = done
	go func() {
		defer close(done)
		work()
	}()
}

// mapIndex maps the index that was written, which the views are made of. Refresh does not wait for a search
// of this process that is mapping the one before: the views would follow that one then, and keep what a
// purge has the log forget behind it.
func (fl *Flusher) mapIndex(held *wal.Held) error {
	fl.Engine.KeepUp(held)
	if fl.Engine.State.From() < fl.Engine.Log.Spilled() {
		return fl.Engine.Refresh()
	}
	return nil
}

// overdue says that an index is due of what the files have already: none could be written while the one
// before was followed.
func (fl *Flusher) overdue() bool {
	flushed, spilled := fl.Engine.Log.Flushed(), fl.Engine.Log.Spilled()
	return flushed > spilled && int64(flushed-spilled) > fl.Engine.Env.System.SpillBytes
}

// followed waits until that is done.
func (fl *Flusher) followed() {
	if fl.following != nil {
		<-fl.following
		fl.following = nil
	}
}

// flushOn is a round in the background or of a close, and the rounds beside what follows its index.
func (fl *Flusher) flushOn(ctx context.Context, held *wal.Held, m Merge) error {
	fl.beside = !fl.Engine.Env.System.Inline
	defer func() {
		fl.beside = false
		fl.followed()
	}()
	pause := time.NewTimer(time.Hour)
	defer pause.Stop()
	beat := time.Now()
	for {
		if now := time.Now(); now.Sub(beat) >= wal.HeartbeatEvery {
			beat = now
			if err := fl.Engine.Log.Heartbeat(); err != nil {
				fl.Engine.Env.Logger.Warn("heartbeat", "err", err)
			}
		}
		began, durable := time.Now(), fl.Engine.Log.Durable()
		err := fl.FlushLocked(ctx, held, m)
		if err != nil || fl.following == nil || fl.yields() {
			return err
		}
		wrote := fl.Engine.Log.Durable() != durable
		pause.Reset(RestAfter(max(time.Since(began), time.Millisecond), wrote, fl.More.Load(), fl.full()))
	resting:
		for {
			select {
			case <-fl.following:
				fl.following = nil
				return nil // also where the next index is due: others want the lock too
			case <-fl.urge:
				if fl.unfiled() >= slowFrom {
					break resting
				}
			case <-pause.C:
				break resting
			}
		}
	}
}
