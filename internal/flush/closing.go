package flush

import (
	"context"
	"errors"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/wal"
)

// A store that closes makes the files of what was durable by then. Several may close at once, behind a backlog
// that takes longer than one waits for a lock. So that is done in rounds of the background's size, and flush.lock
// is let go of between them. A process that waits for it goes on waiting while files get on, for the holder
// makes those of all; and when its own are there it leaves without the lock. What is left of the index then
// is for the other process to write, or for the next open to replay.

// closingSpill is how many entries a clean close leaves to the next replay.
const closingSpill = 1000

// FlushClosing is the rounds of a store that closes. ctx is how long flush.lock is waited for.
func (fl *Flusher) FlushClosing(ctx context.Context) error {
	if err := fl.Engine.Sight(ctx); err != nil {
		return err
	}
	until := fl.Engine.Log.Durable()
	if !fl.Engine.Rotten.Load() && fl.there(until) && fl.Engine.State.Overlay().Len() <= closingSpill {
		c, err := fl.Engine.Log.Checkpoint()
		if err == nil && c.Attested.LSN == until {
			return nil
		}
	}
	for {
		held, err := fl.lockClosing(ctx, until)
		if held == nil {
			return err
		}
		err = fl.FlushLocked(context.WithoutCancel(ctx), held, mergeClosing)
		held.Unlock()
		if err != nil || !fl.More.Load() || fl.there(until) {
			return err
		}
	}
}

// there says that everything before a position is in files.
func (fl *Flusher) there(until wal.LSN) bool {
	return fl.Engine.Log.Flushed() >= until && !fl.Engine.Log.Distrusted()
}

// lockClosing waits for flush.lock, as long as one waits for a lock since files last got on. It returns nil without an
// error when everything before a position is in files, and another process still has the lock.
func (fl *Flusher) lockClosing(ctx context.Context, until wal.LSN) (*wal.Held, error) {
	for {
		before := fl.Engine.Log.FiledTo()
		held, err := fl.Engine.Log.LockFlushUnless(ctx, func() bool { return fl.there(until) })
		if err == nil || !errors.Is(err, errs.ErrLocked) || ctx.Err() != nil || fl.Engine.Log.FiledTo() == before {
			return held, err
		}
	}
}
