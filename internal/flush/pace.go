package flush

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/meter"
	"github.com/varve-db/varve/wal"
)

// Files follow the log, and cost twenty times as much: writers that do not let up are faster than the
// flushers of all processes together. So that neither the log ahead of the files, and with it the
// time of a recovery, grows without bound, nor a writer is held up for long, writers are slowed by
// small delays, all of them alike:
//
//	below slowFrom of the bound   nobody is slowed, and flushers rest the less the fuller it is
//	above                         each commit takes a turn on a clock that all processes share; the
//	                              turn lasts as long as the flushers take for as many bytes, and
//	                              up to slowMost times that, the fuller the longer
//
// So a burst that fits into the first part of the bound is not slowed at all, and a load that goes on
// settles where the commits are as fast as the files. slowMost is the promise that a commit waits no
// longer than that many times what its bytes, and those queued before it, take to settle: where the
// flushers are held up themselves (a merge of a large index) the backlog passes its bound for a
// while, and writers go on at this rate. The log since the last index has a bound of its own,
// BacklogBytes: from half of that on turns are as long as they need to be for it never to be passed.
// There puts wait for the flushers, and fail with the flushers' error when these fail.
//
// No turn is longer than mostTurn while there is room, up to roomTo of the bounds: a batch of a thousand is
// worth seconds where the disk is slow, or was when the rate was measured over a few rounds, and in that time
// nobody would commit anything.
//
// A turn begins when those before it are over, and slack before that: a sleep costs more than a short
// turn lasts, and a few commits may go in at once.
const (
	slowFrom = 0.5
	slowMost = 1.5
	mostTurn = 400 * time.Millisecond
	roomTo   = 0.9
	slack    = 2 * time.Millisecond
)

// What is taken for the rate of the flushers while it is not known, and the least that is believed.
const (
	rateFirst = 16 << 20
	rateLeast = 256 << 10
)

// full is how far the backlog is filled; 1 is its bound.
func (fl *Flusher) full() float64 { return max(fl.unfiled(), fl.unspilled()) }

func (fl *Flusher) unfiled() float64 {
	return float64(fl.engine.Log().Pace().Unfiled()) / float64(fl.engine.Settings().Now().Backlog())
}

// unspilled is how far the log since the index is on the way to what it may never pass: it passes the
// first half where what follows an index, the words of the views, is slower than the files.
func (fl *Flusher) unspilled() float64 {
	return float64(fl.engine.Log().Backlog()) / float64(fl.engine.Env().System.BacklogBytes)
}

// turnOf is how long the turn of a commit lasts.
func (fl *Flusher) turnOf(bytes int64) time.Duration {
	rate := fl.engine.Log().Pace().Rate()
	if rate == 0 {
		rate = rateFirst
	}
	files, index := fl.turns()
	turn := time.Duration(max(files, index) * float64(bytes) / max(rate, rateLeast) * float64(time.Second))
	if fl.full() < roomTo {
		turn = min(turn, mostTurn)
	}
	return turn
}

// turns are how many times as long as its bytes take the turn of a commit lasts, for the files and for the
// index: 1 at slowFrom, from where on the commits are no faster than the files.
func (fl *Flusher) turns() (files, index float64) {
	of := func(full float64) float64 { return full / max(1-full, 0.01) }
	return min(slowMost, of(fl.unfiled())), of(fl.unspilled())
}

// unpaced is the key of a context whose commits are those of a flusher: it would wait for itself.
type unpaced struct{}

// Unpaced is ctx for what commits instead of flushing, or after the last flush.
func Unpaced(ctx context.Context) context.Context { return context.WithValue(ctx, unpaced{}, true) }

// Pressure makes a writer wait while the log is far ahead of the files. How many bytes of log it writes is asked
// only then.
func (fl *Flusher) Pressure(ctx context.Context, bytes func() int64) error {
	if ctx.Value(unpaced{}) != nil {
		return nil
	}
	if fl.engine.Env().NoBackground || fl.engine.Env().System.Inline {
		return fl.flushAhead(ctx)
	}
	if fl.engine.Log().Backlog() > fl.engine.Env().System.BacklogBytes {
		if err := fl.stopped(ctx); err != nil {
			return err
		}
	}
	if fl.uptime == nil || fl.full() < slowFrom {
		return nil
	}
	select {
	case fl.urge <- struct{}{}:
	default:
	}
	now, turn := fl.uptime(), fl.turnOf(bytes())
	begins, ends := fl.engine.Log().Pace().Turn(now, turn)
	wait := begins - now
	if wait <= slack {
		return nil
	}
	fl.slowed.note(fl, wait)
	fl.engine.Env().Meters.Took(meter.Slowed, wait)
	if err := fl.engine.Env().Sleep(ctx, wait-slack/2); err != nil {
		fl.engine.Log().Pace().GiveBack(ends - begins)
		return err
	}
	return nil
}

// stopPause is between two looks whether the backlog is below what it may never pass.
const stopPause = 10 * time.Millisecond

// stopped waits until the backlog is below what it may never pass. Flushers that fail say why; where
// they have not come on for as long as one waits for a lock, this writer flushes itself, which has
// come to an end or to the reason why it cannot.
func (fl *Flusher) stopped(ctx context.Context) error {
	least, since := int64(math.MaxInt64), time.Now()
	for {
		if err := fl.engine.Log().Folder().Replaced(); err != nil {
			return err
		}
		now := fl.engine.Log().Backlog()
		if now <= fl.engine.Env().System.BacklogBytes {
			return nil
		}
		if now < least {
			least, since = now, time.Now()
		}
		if fl.failed.Load() > 0 || fl.indexWaits() || time.Since(since) > fl.engine.Env().LockWait {
			return fl.flushAhead(ctx)
		}
		fl.slowed.note(fl, stopPause)
		fl.engine.Env().Meters.Took(meter.Slowed, stopPause)
		select {
		case fl.urge <- struct{}{}:
		default:
		}
		if err := fl.engine.Env().Sleep(ctx, stopPause); err != nil {
			return err
		}
	}
}

// flushAhead flushes in the caller while the backlog is above what it may never pass: where nothing
// flushes in the background.
func (fl *Flusher) flushAhead(ctx context.Context) error {
	for last := int64(math.MaxInt64); fl.engine.Log().Backlog() > fl.engine.Env().System.BacklogBytes; {
		if err := ctx.Err(); err != nil {
			return err
		}
		// Where nothing is left to flush, and the page that processes share says otherwise, flushing
		// again changes nothing.
		now := fl.engine.Log().Backlog()
		if now >= last && fl.engine.Log().Flushed() >= fl.engine.Log().Durable() {
			return nil
		}
		last = now
		if err := fl.Flush(ctx, MergeWhenDue); err != nil {
			return err
		}
		if fl.engine.Log().Backlog() > fl.engine.Env().System.BacklogBytes {
			if err := fl.Flush(ctx, MergeFlush); err != nil {
				return err
			}
		}
	}
	return nil
}

// slowed remembers when writers of this process were slowed.
type slowed struct {
	mu    sync.Mutex
	until time.Time // the last one waits until then
}

// slowGap is how long nobody was slowed before it is said once more.
const slowGap = 10 * time.Second

// note says once, when it begins, that writers are slowed.
func (s *slowed) note(fl *Flusher, wait time.Duration) {
	s.mu.Lock()
	now := time.Now()
	begins := now.Sub(s.until) > slowGap
	s.until = now.Add(wait)
	s.mu.Unlock()
	if begins {
		bytes, why := fl.behind()
		fl.engine.Env().Event(env.Event{Kind: env.EventSlowed, Bytes: bytes, Took: wait, Note: why})
	}
}

// behind says why writers are slowed, and how many bytes of log what they wait for is behind.
func (fl *Flusher) behind() (bytes int64, why string) {
	rate := "not known yet"
	if r := fl.engine.Log().Pace().Rate(); r > 0 {
		rate = human.Bytes(int64(r)) + " a second"
	}
	if files, index := fl.turns(); index > files {
		bytes = fl.engine.Log().Backlog()
		return bytes,
			fmt.Sprintf("the index, with the views that are made of it, is %s behind the log, of %s at most; the files follow "+
				"at a rate of %s", human.Bytes(bytes), human.Bytes(fl.engine.Env().System.BacklogBytes), rate)
	}
	bytes = fl.engine.Log().Pace().Unfiled()
	return bytes,
		fmt.Sprintf("the files are %s behind the log, of %s that backlog_bytes allows; they follow at a rate of %s",
			human.Bytes(bytes), human.Bytes(fl.engine.Settings().Now().Backlog()), rate)
}

// Slowed says why commits of any process wait for the flushers; "" when they do not.
func (fl *Flusher) Slowed() string {
	if fl.full() < slowFrom {
		return ""
	}
	_, why := fl.behind()
	return why
}

// timed measures a round: what it gives, called at the end, tells all writers how far the files are and
// how fast they follow.
func (fl *Flusher) timed() func(held *wal.Held) error {
	if fl.uptime == nil {
		return func(*wal.Held) error { return nil }
	}
	began, before := fl.uptime(), fl.moved
	return func(held *wal.Held) error {
		if fl.moved == before {
			return nil
		}
		return fl.engine.Log().Pace().Filed(held, fl.Lagging.filed, fl.moved-before, fl.uptime()-began)
	}
}
