package scopes

import (
	"time"

	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/working"
)

// What is in working memory expires by ticks: Unix milliseconds that a wall clock which
// jumps does not move. The first process in a boot of the machine that needs one ties
// them to the uptime (wal.Anchor), by the wall clock as it is then; all others of that
// boot go by the uptime from there. A machine that starts with a wrong time has the grace
// that memories have (package retention): until a reading of the clock an hour later or more
// confirms the first one, what that makes look old is absent for every read, but nothing is freed
// because of it, in the file or by the log; and a clock that is put back before that brings it
// back. (One that was right and is put back then keeps what expires for as long again as it was
// there.)
//
// Where nothing is known that all processes share, ticks begin with the wall clock
// when the store was opened, and go on by a clock of the process that does not jump.
//
// The uptime is the machine's, whatever clock the host has given the store: a host's clock
// may jump like any other. Only a simulated machine (vfs.System) has an uptime of its own, or none.

// putBack is how much earlier than the ticks a wall clock is that was ahead.
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

// Mono returns the time since some fixed moment, by a clock of the process that does not jump.
func (ws *Scopes) Mono() time.Duration { return ws.mono() }

// Tick is now. What a scope was before doubted, if that is not 0, must not be freed
// because of it.
func (ws *Scopes) Tick() (now, doubted int64) {
	if ws.tuning.Uptime != nil {
		if now, doubted, ok := ws.sharedTick(ws.tuning.Uptime().Milliseconds()); ok {
			return now, doubted
		}
	}
	return ws.began.UnixMilli() + (ws.mono() - ws.opened).Milliseconds(), 0
}

// sharedTick is tick by the uptime; false when there is no anchor and none can be cast.
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

// moment is now, as operations are judged, and what the log is told; mu is held. now
// never comes before the newest change, whosever clock that went by. An entry has an
// earlier tick when the clock is in doubt: what it carries out says itself when it is over, except
// checkpoints, which are reported by marks.
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

// marksAny reports whether one of some operations makes or restores a checkpoint.
func marksAny(list []*asked) bool {
	for _, q := range list {
		switch q.r.Op.(type) {
		case working.OpCheckpoint, working.OpRestore:
			return true
		}
	}
	return false
}
