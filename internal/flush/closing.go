package flush

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/wal"
)

// A store that closes makes the files of what was durable by then. Several may close at once, behind a backlog
// that takes longer than one waits for a lock. So that is done in rounds of the background's size, and flush.lock
// is let go of between them. A process that waits for it goes on waiting while files get on, for the holder
// makes those of all; and when its own are there it leaves without the lock. What is left of the index then
// is for the other process to write, or for the next open to replay. A process that must end soon
// (Store.CloseWithin) closes in smaller rounds until its time is over, and writes no index that takes long. After
// an unclean end the files are not trusted before the last of them is made, by whichever process.

const (
	closingSpill  = 1000        // entries that a clean close leaves to the next replay
	endingSpill   = 5000        // entries whose words take a second
	endingRepeats = 64          // files of a round of a process that must end soon, where each is synced by itself
	endingJudge   = time.Second // as long it waits for what is set aside to be judged
)

// closingPause is how long flush.lock is let go of between two rounds: a process that waits has to be woken.
const closingPause = 10 * time.Millisecond

func closing(m Merge) bool { return m == mergeClosing || m == mergeEnding }

// FlushClosing is the rounds of a store that closes. A deadline of ctx ends them.
func (fl *Flusher) FlushClosing(ctx context.Context) error {
	if err := fl.engine.CatchUp(ctx); err != nil {
		return err
	}
	ctx = Unpaced(ctx)
	until := fl.engine.Log().Durable()
	if len(fl.aside) == 0 && fl.engine.Log().Flushed() >= until && !fl.engine.Log().Notes().Distrusted() &&
		!fl.engine.Damaged().Load() && fl.engine.State().Overlay().Len() <= closingSpill {
		c, err := fl.engine.Log().Checkpoint()
		if err == nil && c.Attested.LSN >= until {
			return nil
		}
	}
	m, round := mergeClosing, context.WithoutCancel(ctx)
	if _, ends := ctx.Deadline(); ends {
		m, round = mergeEnding, ctx
	}
	for again := false; ; {
		held, err := fl.lockClosing(ctx, m, until)
		if held == nil {
			return err
		}
		err = fl.flushOn(round, round, held, m)
		over := round.Err() != nil && (err == nil || errors.Is(err, round.Err()) && !errors.Is(err, errs.ErrSyncFailed))
		if len(fl.aside) > 0 { // of a round that failed
			fl.judgeAside(ctx, held)
		}
		if fl.engine.Log().Folder().Unrecorded(err) {
			err = errors.Join(err, fl.rescueUnrecorded(round, held))
		}
		held.Unlock()
		more := fl.More.Load()
		switch {
		case over && fl.filedTo(m, until):
			return nil
		case over:
			return fmt.Errorf("the time for closing is over, and %s of the log are not in files yet: %w",
				human.Bytes(fl.engine.Log().Pace().Unfiled()), cmp.Or(err, round.Err()))
		case err != nil || again && !more:
			return err
		case fl.filedTo(m, until) && (more || m == mergeEnding || fl.engine.Log().Spilled() >= until ||
			fl.engine.State().Overlay().Len() <= closingSpill):
			return nil // more is of others, who make an index of it
		}
		again = !more // once more, for the index, where the last round was made beside words
		if !again {
			_ = fl.engine.Env().Sleep(ctx, closingPause)
		}
	}
}

// filedTo reports whether everything before a position is in files, and that this process knows of nothing else
// for which it must have flush.lock. One that must end soon leaves it to others to trust the files again, and to
// write an index in the place of a rotten one.
func (fl *Flusher) filedTo(m Merge, until wal.LSN) bool {
	return fl.engine.Log().Flushed() >= until &&
		(m == mergeEnding || !fl.engine.Log().Notes().Distrusted() && !fl.engine.Damaged().Load()) && !fl.leftovers &&
		len(fl.aside) == 0
}

// lockClosing waits for flush.lock: once more as long as one waits for a lock where files have got on meanwhile. It
// returns nil without an error when everything before a position is in files, and another process still has the
// lock.
func (fl *Flusher) lockClosing(ctx context.Context, m Merge, until wal.LSN) (*wal.Held, error) {
	for {
		filed, flushed := fl.engine.Log().Pace().FiledTo(), fl.engine.Log().Flushed()
		held, err := fl.engine.Log().LockFlushUnless(ctx, func() bool { return fl.filedTo(m, until) })
		if err == nil || !errors.Is(err, errs.ErrLocked) || ctx.Err() != nil ||
			fl.engine.Log().Pace().FiledTo() == filed && fl.engine.Log().Flushed() == flushed {
			return held, err
		}
	}
}
