package sim

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/internal/vfs/trace"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// Proc is a simulated process.
type Proc struct {
	FS   vfs.FS // the process's view of the disk
	Name string
	PID  int

	s       *Sim
	f       func(*Proc)
	view    *crash.Process
	disk    *crash.Disk
	wake    chan struct{}
	started bool
	done    bool
	killed  bool
	stopped time.Time // time until which the process is stopped

	waiting *wrap.Op // the operation that waits, until the disk's Wakes exceeds seen
	seen    uint64
	expired bool // its wait times out because nothing else can happen
}

// Process adds a process to this boot. The process starts when Run is called. If a process or OnKill adds it during a
// run, it starts at once.
func (s *Sim) Process(name string, f func(p *Proc)) *Proc {
	p := &Proc{Name: name, s: s, f: f, disk: s.disk, view: s.disk.NonBlocking(name), wake: make(chan struct{}, 1)}
	p.PID = p.view.PID()
	p.FS = s.sites.Also(p.view, p.operate)
	s.procs = append(s.procs, p)
	return p
}

// Now returns the simulated time.
func (p *Proc) Now() time.Time { return p.s.now }

// Sim returns the machine that the process runs on.
func (p *Proc) Sim() *Sim { return p.s }

// Killed reports whether the process is ending because it was killed or the power failed.
func (p *Proc) Killed() bool { return p.killed }

// Yield lets other processes run.
func (p *Proc) Yield() {
	p.check()
	p.s.yield(p)
	p.check()
}

// Sleep blocks the process for the duration d of simulated time. Other processes run meanwhile.
func (p *Proc) Sleep(d time.Duration) {
	p.check()
	p.stopped = p.s.now.Add(d)
	p.s.yield(p)
	p.check()
}

// Wait lets simulated time pass as Sleep does. If ctx ends before that, Wait ends too and returns the error of ctx. The
// deadline of ctx counts as simulated time.
func (p *Proc) Wait(ctx context.Context, d time.Duration) error {
	if at, ok := ctx.Deadline(); ok && at.After(p.s.now) {
		d = min(d, at.Sub(p.s.now))
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	p.Sleep(d)
	return ctx.Err()
}

// Rand returns a source of random bytes for this process, the same in each replay.
func (p *Proc) Rand() io.Reader {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], p.s.seed)
	binary.LittleEndian.PutUint64(seed[8:], uint64(p.PID))
	return rand.NewChaCha8(seed)
}

// main is the goroutine of the process: it runs the process's function when the scheduler starts it.
func (p *Proc) main() {
	defer p.exit()
	p.f(p)
}

func (p *Proc) exit() {
	s := p.s
	r := recover() // nil after Goexit
	p.done = true
	if r != nil {
		s.fail(fmt.Errorf("process %s panicked at operation %d: %v\n%s", p.Name, s.ops, r, debug.Stack()))
	}
	p.disk.Kill(p.view) // as when any process ends
	if next := s.pick(); next != nil {
		s.resume(next)
	} else {
		close(s.ended)
	}
}

// check ends the goroutine if the process was killed.
func (p *Proc) check() {
	if p.killed {
		runtime.Goexit()
	}
}

// operate is the hook that executes every operation of the process. It first lets random events happen, advances the
// simulated clock, and counts the operation. If the power fails at this operation, the process ends.
func (p *Proc) operate(op *wrap.Op, call func() error) error {
	s := p.s
	p.check()
	if s.Odds != (Odds{}) {
		s.interfere(p, op, call)
		p.check()
	}
	s.ops++
	s.advance(s.now.Add(s.Step))
	if s.ops > s.MaxOps {
		s.fail(fmt.Errorf("more than %d operations: a livelock?", s.MaxOps))
		p.check()
	}
	op.Seq = s.ops
	if op.Kind.Changes() {
		s.changes = append(s.changes, s.ops)
	}
	s.coverage.count(op, "")
	if pattern, ok := s.cutHere(); ok {
		s.cut(op, call, pattern)
		p.check()
	}
	err := p.finish(op, call)
	if s.Trace != nil {
		s.tracef("%d %s/%d %s %s", op.Seq, p.Name, p.PID, op.Site(), trace.Format(op, "", err))
	}
	return err
}

// finish executes an operation. If the operation would block, finish waits and tries again.
func (p *Proc) finish(op *wrap.Op, call func() error) error {
	s := p.s
	for {
		seen := s.disk.Wakes()
		err := call()
		if !errors.Is(err, crash.ErrWouldBlock) {
			return err
		}
		p.waiting, p.seen = op, seen
		s.yield(p)
		p.waiting = nil
		p.check()
		if op.Ctx == nil {
			continue
		}
		if err := op.Ctx.Err(); err != nil {
			return err
		}
		if p.expired {
			p.expired = false
			return context.DeadlineExceeded
		}
	}
}
