package scopes

import (
	"time"

	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/working"
)

// Items in working memory expire by ticks: Unix milliseconds that do not jump when the wall clock
// is set. The first process after a boot of the machine that needs ticks ties them to the uptime
// (wal.Anchor), using the wall clock at that moment; all processes of the same boot add the uptime
// to this anchor. A machine that boots with a wrong time has the same grace period as for memories
// (package retention): until a reading of the clock an hour later or more confirms the first one,
// items that look expired by it are absent for every read, but are not removed from the file or by
// the log; if the clock is set back before that, the items are visible again. (If the first reading
// was right and the clock is set back later, items expire later by the time for which the clock was
// set back.)
//
// If no uptime is known that all processes share, ticks start from the wall clock when the store
// was opened, and advance by a clock of the process that does not jump.
//
// The uptime is the machine's, even if the host program gave the store another clock, which may
// jump like any clock. Only a simulated machine (vfs.System) has an uptime of its own, or none.

// putBack is the minimum difference between the wall clock and the ticks of working memory at which the wall clock
// counts as set back (if it is behind the ticks) or set ahead (if it is ahead of the ticks).
const putBack = time.Minute

func (ws *Scopes) initClock() {
	ws.began = ws.engine.Env().Clock()
	opened, s := time.Now(), ws.engine.Env().System
	ws.tuning.Uptime, ws.mono = s.Uptime, s.Mono
	switch {
	case ws.mono != nil:
		ws.opened = ws.mono()
	case s.Inline: // the clock is that of a simulated machine
		ws.mono = func() time.Duration { return ws.engine.Env().Clock().Sub(ws.began) }
	default:
		ws.mono = func() time.Duration { return time.Since(opened) }
		if ws.tuning.Uptime == nil {
			ws.tuning.Uptime = vfs.Uptime()
		}
	}
}

// Mono returns the time since a fixed moment. It uses a clock of the process that never jumps.
func (ws *Scopes) Mono() time.Duration { return ws.mono() }

// Tick returns the current tick. Ticks are the time by which working memory expires. If doubted is not 0, it is
// uncertain whether the clock is right, and items that had not expired at the tick doubted must not be removed yet.
func (ws *Scopes) Tick() (now, doubted int64) {
	if ws.tuning.Uptime != nil {
		if now, doubted, ok := ws.sharedTick(ws.tuning.Uptime().Milliseconds()); ok {
			return now, doubted
		}
	}
	return ws.began.UnixMilli() + (ws.mono() - ws.opened).Milliseconds(), 0
}

// Now returns the time that decides about age when the store changes documents. This is the time of the clock. But if
// the clock is more than a minute ahead of the ticks, the clock was set ahead after the machine was started, and Now
// returns the time of the ticks. If doubted is not zero, it is uncertain whether the time is right: for an hour after a
// process first read the clock in this boot, or found that the clock was set back. doubted is the time of that reading.
func (ws *Scopes) Now() (now, doubted time.Time) {
	now = ws.engine.Env().Clock()
	tick, since := ws.Tick()
	if ticks := time.UnixMilli(tick); now.Sub(ticks) > putBack {
		now = ticks.UTC()
	}
	if since != 0 {
		doubted = time.UnixMilli(since).UTC()
	}
	return now, doubted
}

// sharedTick returns the current tick as Tick does. It computes the tick from up, the uptime of the machine in
// milliseconds. ok is false if no anchor relates the uptime to ticks, and no anchor can be set.
func (ws *Scopes) sharedTick(up int64) (now, doubted int64, ok bool) {
	up = max(up, 1)
	for {
		a := ws.engine.Log().Clock().Anchor()
		if a.Settled {
			return up + a.Offset, 0, true
		}
		none, wall := a == wal.Anchor{}, ws.engine.Env().Clock().UnixMilli()
		if !none && (wall >= up+a.Offset-putBack.Milliseconds() || ws.engine.Env().ReadOnly) {
			if up-a.At < engine.ClockGrace.Milliseconds() || ws.engine.Env().ReadOnly {
				return up + a.Offset, a.At + a.Offset, true
			}
			ws.engine.Log().Clock().Settle(a)
			return up + a.Offset, 0, true
		}
		c := ws.engine.Log().Clock()
		if !c.Cast(a, wal.Anchor{Offset: wall - up, At: up}) && c.Anchor() == a {
			return 0, 0, false
		}
	}
}

// moment returns two moments. now is the moment for which operations are carried out. It is never before the newest
// change, even if another process with another clock made that change. logged is the moment that is recorded in the
// log entry. marks reports whether one of the operations creates a checkpoint of the scope or goes back to one.
//
// While the clock is in doubt, logged has the tick of the newest change, so that applying the entry expires nothing.
// The changes themselves name what has expired. Checkpoints do not, so if marks is true, logged has the real tick. The
// caller holds mu.
func (s *scope) moment(marks bool) (now, logged working.Moment) {
	tick, doubted := s.ws.Tick()
	tick += s.offset
	if behind := s.state.Tick() - tick; behind > 0 {
		s.offset += behind
		tick += behind
	}
	now = working.Moment{Time: s.ws.engine.Env().Clock().UnixMicro(), Tick: tick}
	logged = now
	if !marks && !s.state.Empty() && s.state.Tick() < doubted {
		logged.Tick = s.state.Tick()
	}
	return now, logged
}

// marksAny reports whether any of the operations creates a checkpoint or goes back to one.
func marksAny(list []*asked) bool {
	for _, q := range list {
		switch q.r.Op.(type) {
		case working.OpCheckpoint, working.OpRestore:
			return true
		}
	}
	return false
}
