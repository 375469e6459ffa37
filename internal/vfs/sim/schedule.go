package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/internal/vfs/trace"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// interfere applies random events to the processes before an operation of p.
func (s *Sim) interfere(p *Proc, op *wrap.Op, call func() error) {
	if s.chance(s.Odds.Kill) {
		s.kill(s.anyone(), p, op, call)
		p.check()
	}
	if s.chance(s.Odds.Stop) {
		victim := s.anyone()
		victim.stopped = s.now.Add(time.Duration(s.rng.Int64N(int64(s.StopFor)) + 1))
		s.coverage.count(op, "stop")
		s.tracef("stop %s/%d until %s", victim.Name, victim.PID, victim.stopped.Format("05.000000"))
		if victim == p {
			s.yield(p)
			return
		}
	}
	if s.chance(s.Odds.Switch) {
		s.coverage.count(op, "switch")
		s.yield(p)
	}
}

// anyone returns a random live process, which may be the caller.
func (s *Sim) anyone() *Proc {
	alive := make([]*Proc, 0, len(s.procs))
	for _, p := range s.procs {
		if !p.done && !p.killed {
			alive = append(alive, p)
		}
	}
	return alive[s.rng.IntN(len(alive))]
}

// kill kills a process. If the process is about to write, a part of the write may still be done: a kill can stop a
// write between two pages.
func (s *Sim) kill(victim, p *Proc, op *wrap.Op, call func() error) {
	s.coverage.count(op, "kill")
	s.tracef("kill %s/%d", victim.Name, victim.PID)
	if victim == p && op.Kind == wrap.Write && op.Size > 1 && s.rng.IntN(2) == 0 {
		op.Size = s.rng.IntN(op.Size)
		call()
	}
	victim.killed = true
	victim.disk.Kill(victim.view)
	if s.OnKill != nil {
		s.OnKill(victim)
	}
}

// KillProcess kills a process, from outside Run or from another process.
func (s *Sim) KillProcess(p *Proc) {
	if !p.done {
		p.killed = true
		p.disk.Kill(p.view)
	}
}

// cutHere reports whether the power fails at this operation: because of CutAt, or at random by Odds.Cut. If so, it
// returns the pattern of the failure.
func (s *Sim) cutHere() (crash.Pattern, bool) {
	if p, ok := s.cuts[s.ops]; ok {
		return p, true
	}
	if s.chance(s.Odds.Cut) {
		return s.Patterns[s.rng.IntN(len(s.Patterns))], true
	}
	return 0, false
}

// yield lets the scheduler choose the next process; it returns when p runs again.
func (s *Sim) yield(p *Proc) {
	next := s.pick()
	if next == nil { // a deadlock: all processes were killed, and p ends first
		return
	}
	if next != p {
		s.resume(next)
		<-p.wake
	}
}

// resume lets the process p run. Only one process may run at a time, so after the call the caller must wait or end.
func (s *Sim) resume(p *Proc) {
	if !p.started {
		p.started = true
		go p.main()
		return
	}
	p.wake <- struct{}{}
}

// pick returns one of the processes that can run. If none can run, it advances the clock first. It returns nil if all
// processes have ended.
func (s *Sim) pick() *Proc {
	for {
		var ready []*Proc
		alive := false
		for _, p := range s.procs {
			alive = alive || !p.done
			if p.ready() {
				ready = append(ready, p)
			}
		}
		switch {
		case len(ready) == 1:
			return ready[0]
		case len(ready) > 1:
			return ready[s.rng.IntN(len(ready))]
		case !alive:
			return nil
		case s.jump(), s.expire():
		default:
			s.fail(s.deadlock()) // all are killed, and so ready to end
		}
	}
}

func (p *Proc) ready() bool {
	switch {
	case p.done:
		return false
	case p.killed:
		return true
	case p.stopped.After(p.s.now):
		return false
	case p.waiting == nil:
		return true
	}
	return p.expired || p.s.disk.Wakes() != p.seen || p.waiting.Ctx != nil && p.waiting.Ctx.Err() != nil
}

// jump advances the clock to the next event. It returns false if there is no further event.
func (s *Sim) jump() bool {
	var next time.Time
	earlier := func(t time.Time) {
		if t.After(s.now) && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	for _, p := range s.procs {
		if !p.done {
			earlier(p.stopped)
		}
	}
	for _, d := range s.timers {
		earlier(d.at)
	}
	if next.IsZero() {
		return false
	}
	s.advance(next)
	return true
}

// expire ends the wait of one process that waits with a context whose deadline is in real time. It returns false if no
// process waits in this way.
func (s *Sim) expire() bool {
	for _, p := range s.procs {
		if p.done || p.waiting == nil || p.waiting.Ctx == nil {
			continue
		}
		if _, ok := p.waiting.Ctx.Deadline(); ok {
			p.expired = true
			return true
		}
	}
	return false
}

// DeadlockError means that no process can continue.
type DeadlockError struct {
	Op      int
	Waiting []string
	Held    []crash.Held
}

func (e *DeadlockError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "deadlock at operation %d:", e.Op)
	for _, w := range e.Waiting {
		b.WriteString("\n\t" + w)
	}
	for _, h := range e.Held {
		fmt.Fprintf(&b, "\n\t%s is held %s by %s/%d", h.Path, h.Mode, h.Name, h.PID)
	}
	return b.String()
}

func (s *Sim) deadlock() error {
	e := &DeadlockError{Op: s.ops, Held: s.disk.Locks()}
	for _, p := range s.procs {
		if !p.done && p.waiting != nil {
			e.Waiting = append(e.Waiting, fmt.Sprintf("%s/%d waits at %s in %s",
				p.Name, p.PID, p.waiting.Site(), trace.Format(p.waiting, "", nil)))
		}
	}
	return e
}
