package flush

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/views"
	"github.com/varve-db/varve/wal"
)

// A store that closes writes the files of everything that is durable by then. Several stores may close at once, with a
// backlog that takes longer than the lock wait. So closing runs in rounds of the background's size, and flush.lock is
// released between them. A process that waits for the lock keeps waiting while files are written, because the holder
// writes those of all processes; once its own files are written it leaves without the lock. The rest of the index is
// then for the other process to write, or for the next open to replay. The words of many changes take longer than their
// files: a process with a background goroutine leaves them to the next one, as after a kill, and searches make them
// from the log until then. A process without one makes a part of the words that other processes have left, as does each
// such process after it. A process that must end soon (Store.CloseWithin) closes in smaller rounds until its time is
// over, and writes no index that takes long. After an unclean end the files are not trusted before the last of them is
// written, by any process.

const (
	closingSpill = 1000 // number of log entries that a clean close may leave for the next open to replay
	endingSpill  = 5000 // number of entries whose words take about a second to index
	closingWords = 5000 // maximum number of entries whose words a close always indexes itself: see leavesWords
	// maximum number of files in a round of a process that must end soon, if each file is synced individually
	endingRepeats = 64
	endingJudge   = time.Second // maximum time for judging the files that rounds have moved to quarantine
)

// closingPause is the time for which flush.lock is released between two rounds, so that a waiting process can wake up
// and take it.
const closingPause = 10 * time.Millisecond

func closing(m Merge) bool { return m == mergeClosing || m == mergeEnding }

// FlushClosing writes everything that is durable in the log to files when a store closes, in one round or several. If
// ctx has a deadline, the rounds end at that time.
func (fl *Flusher) FlushClosing(ctx context.Context) error {
	if err := fl.engine.CatchUp(ctx); err != nil {
		return err
	}
	ctx = Unpaced(ctx)
	m, round := mergeClosing, context.WithoutCancel(ctx)
	if _, ends := ctx.Deadline(); ends {
		m, round = mergeEnding, ctx
	}
	until := fl.engine.Log().Durable()
	if len(fl.aside) == 0 && fl.engine.Log().Flushed() >= until && !fl.engine.Log().Notes().Distrusted() &&
		!fl.engine.Damaged().Load() && fl.engine.State().Overlay().Len() <= closingSpill && !fl.owesWords(m) {
		c, err := fl.engine.Log().Checkpoint()
		if err == nil && c.Attested.LSN >= until {
			return nil
		}
	}
	for again := false; ; {
		held, err := fl.lockClosing(ctx, m, until)
		if held == nil {
			return err
		}
		views.Limit(fl.views, held, fl.mostWords(m))
		err = fl.flushOn(round, round, held, m)
		over := round.Err() != nil && (err == nil || errors.Is(err, round.Err()) && !errors.Is(err, errs.ErrSyncFailed))
		if len(fl.aside) > 0 { // set aside by a round that failed
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
			return fl.overtime(until, cmp.Or(err, round.Err()))
		case err != nil || again && !more:
			return err
		case fl.filedTo(m, until) && (more || m == mergeEnding || fl.engine.Log().Spilled() >= until ||
			fl.engine.State().Overlay().Len() <= closingSpill):
			return nil // the remaining entries are of other processes, which will index them
		}
		again = !more // once more, for the index, if the last round ran beside the indexing of words
		if !again {
			_ = fl.engine.Env().Sleep(ctx, closingPause)
		}
	}
}

// overtime returns the error for a close that timed out. The message contains the number of files that were not
// written although their changes are below the log position until, and the reason err.
func (fl *Flusher) overtime(until wal.LSN, err error) error {
	files := len(fl.engine.State().Changes(fl.engine.Log().Pace().FiledTo(), until))
	return fmt.Errorf("closing timed out, and %s not written yet (%s of the log): %w",
		human.Count(files, "file is", "files are"), human.Bytes(fl.engine.Log().Pace().Unfiled()), err)
}

// leavesWords reports whether a close leaves the words of its changes to the next process, which then indexes them.
// changes is the number of these changes. The log keeps the changes until then. A process without a background
// goroutine always indexes the words itself, because the next process may have no background goroutine either.
func (fl *Flusher) leavesWords(m Merge, changes int) bool {
	return m == mergeClosing && changes > closingWords && !fl.dooming && !fl.engine.Env().NoBackground &&
		!fl.engine.Env().System.Inline
}

// owesWords reports whether this process, which has no background goroutine, has in memory the words of changes that an
// earlier process had not indexed. When this process closes the store, it writes these words to files, so that the next
// process need not index the changes again. It does not do so if it must end soon.
func (fl *Flusher) owesWords(m Merge) bool {
	env := fl.engine.Env()
	return m == mergeClosing && env.NoBackground && !env.System.Inline && fl.views.Loose() > closingWords
}

// mostWords returns the maximum number of changes whose words are indexed at a close; 0 means no limit. A process
// without a background goroutine indexes the words of the changes that it has committed itself. Of the changes that
// other processes have left, it indexes only as many as take less than a second. There is no limit if the process has
// already indexed the words of all these changes for its searches (see owesWords).
func (fl *Flusher) mostWords(m Merge) int {
	env := fl.engine.Env()
	if m != mergeClosing || !env.NoBackground || env.System.Inline || fl.dooming || fl.owesWords(m) {
		return 0
	}
	return closingWords * int(1+min(fl.engine.Commits().Load(), math.MaxInt32/closingWords-1))
}

// filedTo reports whether everything before the position until is in document files, and this process has no other
// work that needs flush.lock. Such work is to examine files that are not trusted, to replace a damaged index, to
// search tmp/ for files of killed processes, and to decide about files that rounds have moved to quarantine. A process
// that must end soon leaves the first two tasks to other processes.
func (fl *Flusher) filedTo(m Merge, until wal.LSN) bool {
	return fl.engine.Log().Flushed() >= until &&
		(m == mergeEnding || !fl.engine.Log().Notes().Distrusted() && !fl.engine.Damaged().Load()) && !fl.leftovers &&
		len(fl.aside) == 0
}

// lockClosing waits for flush.lock. If the wait times out although another process wrote files meanwhile,
// lockClosing waits again. If everything before the position end is in files while another process still has the
// lock, lockClosing returns nil without an error.
func (fl *Flusher) lockClosing(ctx context.Context, m Merge, end wal.LSN) (*wal.Held, error) {
	for {
		filed, flushed := fl.engine.Log().Pace().FiledTo(), fl.engine.Log().Flushed()
		held, err := fl.engine.Log().LockFlushUnless(ctx, func() bool { return fl.filedTo(m, end) })
		if err == nil || !errors.Is(err, errs.ErrLocked) || ctx.Err() != nil ||
			fl.engine.Log().Pace().FiledTo() == filed && fl.engine.Log().Flushed() == flushed {
			return held, err
		}
	}
}
