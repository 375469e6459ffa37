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

// Files follow the log, and cost twenty times as much: writers that never pause are faster than the flushers of all
// processes together. Writers are slowed by small delays, all of them equally, so that neither the log ahead of the
// files, and with it the time of a recovery, grows without bound, nor is a writer blocked for long:
//
//	below slowFrom of the bound   no writer is slowed; the fuller the backlog, the less flushers rest
//	above                         each commit takes a turn on a clock that all processes share; the
//	                              turn lasts as long as the flushers need for as many bytes, and
//	                              up to slowMost times that: the fuller, the longer
//	beyond the bound              the turn grows with the backlog: at twice the bound it lasts twice as
//	                              long as at the bound, and so on up to overMost times
//
// So a burst that fits into the first part of the bound is not slowed at all, and a steady load settles where the
// commits are as fast as the files. slowMost is the guarantee that, within the bound, a commit waits no longer than
// that multiple of the time that the flushers need for its bytes and for those queued before it. When the flushers
// themselves are delayed (a merge of a large index) the backlog exceeds its bound for a while, and writers continue
// somewhat slower than that. When no flusher works (a stopped process holds flush.lock), the rate that was measured, or
// is assumed, is wrong: without the growth, writers would continue as if the files followed. The log since the last
// index has its own bound, BacklogBytes: from half of that on, turns are as long as necessary for the bound never to be
// exceeded. At that bound puts wait for the flushers. If these fail, or make no progress, a put flushes itself, and
// fails if that fails.
//
// While the backlog is below roomTo of the bounds, no turn is longer than mostTurn. Otherwise the turn of a batch of a
// thousand documents would last seconds if the disk is slow, or was slow in the few rounds in which the rate was
// measured, and no process could commit in that time.
//
// A turn begins when the turns before it are over, minus slack: a sleep costs more than a short turn lasts, and a few
// commits may proceed at once.
const (
	slowFrom = 0.5
	slowMost = 1.5
	overMost = 100
	mostTurn = 400 * time.Millisecond
	roomTo   = 0.9
	slack    = 2 * time.Millisecond
)

// The rate of the flushers, in bytes of log per second, that is assumed while it is unknown, and the lowest rate that
// is used.
const (
	rateFirst = 16 << 20
	rateLeast = 256 << 10
)

// full returns the backlog relative to its limit: 1 means that the limit is reached. The backlog is the part of the
// log that is not yet in files, or the part that is not yet in the index, whichever is closer to its limit.
func (fl *Flusher) full() float64 { return max(fl.unfiled(), fl.unspilled()) }

func (fl *Flusher) unfiled() float64 {
	return float64(fl.engine.Log().Pace().Unfiled()) / float64(fl.engine.Settings().Now().Backlog())
}

// unspilled returns the number of bytes of log that the index does not cover, relative to the limit that must never be
// exceeded (System.BacklogBytes). The result is above one half if the work after an index, such as indexing the words
// for the views, is slower than writing the files.
func (fl *Flusher) unspilled() float64 {
	return float64(fl.engine.Log().Backlog()) / float64(fl.engine.Env().System.BacklogBytes)
}

// turnOf returns how long the turn of a commit of the given size lasts. While writers are slowed, the next commit of
// any process has to wait until the turn has ended.
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

// turns returns two factors by which the turn of a commit is longer than the time that the flushers need for the
// commit's bytes: one because of the files, one because of the index. If the backlog of one of the two is slowFrom of
// its limit, its factor is 1, and from there on commits are no faster than the flushers.
func (fl *Flusher) turns() (files, index float64) {
	of := func(full float64) float64 { return full / max(1-full, 0.01) }
	unfiled := fl.unfiled()
	over := min(max(1, unfiled), overMost)
	return min(slowMost, of(unfiled)) * over, of(fl.unspilled())
}

// unpaced is the context key that marks commits that are never slowed down. A flusher makes these commits, and would
// otherwise wait for itself.
type unpaced struct{}

// Unpaced returns a context whose commits are never slowed down. It is for commits that are made as part of a flush, or
// after the last flush.
func Unpaced(ctx context.Context) context.Context { return context.WithValue(ctx, unpaced{}, true) }

// Pressure makes a writer wait while too many bytes of log are not yet in files, or not yet covered by the index. The
// function bytes returns the number of bytes of log that the writer adds; Pressure calls it only if the writer may have
// to wait. In a store without background flushes the writer does not wait, but flushes itself if necessary.
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

// stopPause is the interval at which Flusher.stopped checks the size of the log that the index does not cover.
const stopPause = 10 * time.Millisecond

// stopped waits until the part of the log that the index does not cover is below its absolute limit. If the flushers
// fail, or make no progress for the lock wait, stopped flushes in this goroutine, and returns the error of that flush.
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

// flushAhead flushes in the caller's goroutine while the part of the log that the index does not cover exceeds its
// absolute limit. It is called in a store without background flushes, and when the flushers fail.
func (fl *Flusher) flushAhead(ctx context.Context) error {
	for last := int64(math.MaxInt64); fl.engine.Log().Backlog() > fl.engine.Env().System.BacklogBytes; {
		if err := ctx.Err(); err != nil {
			return err
		}
		// If nothing is left to flush although the shared page says otherwise, flushing again changes nothing.
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

// slowed records until when a writer of this process was last slowed down to let the flusher catch up.
type slowed struct {
	mu    sync.Mutex
	until time.Time // time until which the last slowed writer waits
}

// slowGap is the time after which slowed writers are reported again: if no writer was slowed for longer than slowGap,
// the next one that is slowed causes a new event.
const slowGap = 10 * time.Second

// note records that a writer waits for the duration wait. It sends an event to the host if no writer was slowed for
// longer than slowGap before.
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

// behind returns the number of bytes of log that are not yet in files, or of those that are not yet in the index,
// whichever slows writers down more. reason is a text that explains to the user why writers are slowed down.
func (fl *Flusher) behind() (bytes int64, reason string) {
	rate := "not known yet"
	if r := fl.engine.Log().Pace().Rate(); r > 0 {
		rate = human.Bytes(int64(r)) + " a second"
	}
	if files, index := fl.turns(); index > files {
		bytes = fl.engine.Log().Backlog()
		return bytes,
			fmt.Sprintf("the index and its views are %s behind the log, the limit is %s; the files follow at a "+
				"rate of %s", human.Bytes(bytes), human.Bytes(fl.engine.Env().System.BacklogBytes), rate)
	}
	bytes = fl.engine.Log().Pace().Unfiled()
	return bytes,
		fmt.Sprintf("the files are %s behind the log, backlog_bytes allows %s; they follow at a rate of %s",
			human.Bytes(bytes), human.Bytes(fl.engine.Settings().Now().Backlog()), rate)
}

// Slowed returns the reason for which commits of all processes are slowed down until the flushers catch up. It returns
// "" if commits are not slowed down.
func (fl *Flusher) Slowed() string {
	if fl.full() < slowFrom {
		return ""
	}
	_, why := fl.behind()
	return why
}

// timed begins to measure a flush round. The caller calls the returned function at the end of the round. This function
// tells all writers the position up to which the log is in files, and the speed at which the round wrote the files. It
// does nothing if the round has written nothing, or if the uptime of the machine is unknown.
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
