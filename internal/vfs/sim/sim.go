package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// Odds say that something happens at one of so many operations on average; 0 is never.
type Odds struct {
	Switch int // another process runs
	Stop   int // a process is stopped, for up to StopFor
	Kill   int // a process is killed
	Cut    int // the power goes, with one of Patterns
}

// Sim is one simulated machine over several boots. Fields are set before Run.
type Sim struct {
	Odds     Odds
	Patterns []crash.Pattern // of random cuts; all by default
	StopFor  time.Duration   // the longest stop; 100 ms by default
	Step     time.Duration   // what an operation takes; 10 µs by default
	MaxOps   int             // more than these are taken for a livelock; 20,000,000 by default
	// Trace gets a line for each operation and each thing that the scheduler does.
	Trace func(string)
	// OnKill is called after a process was killed by chance; it may start another one.
	OnKill func(p *Proc)

	seed     uint64
	rng      *rand.Rand
	disk     *crash.Disk
	now      time.Time
	ops      int
	changes  []int
	cuts     map[int]crash.Pattern
	procs    []*Proc // of this boot, in the order they were made
	running  bool
	wasCut   bool
	ended    chan struct{}
	err      error
	timers   []*deadline
	sites    *wrap.FS
	coverage Coverage
}

// New makes a machine with an empty disk.
func New(seed uint64) *Sim {
	s := &Sim{
		Odds:     Odds{Switch: 4},
		Patterns: crash.Patterns(),
		StopFor:  100 * time.Millisecond,
		Step:     10 * time.Microsecond,
		MaxOps:   20_000_000,
		seed:     seed,
		rng:      rand.New(rand.NewPCG(seed, 0x7661727665)),
		now:      time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		cuts:     map[int]crash.Pattern{},
		sites:    wrap.New(nil, nil),
		coverage: Coverage{},
	}
	s.setDisk(crash.New())
	return s
}

func (s *Sim) setDisk(d *crash.Disk) {
	s.disk = d
	d.SetClock(func() time.Time { return s.now })
}

// Disk is the machine's disk in this boot.
func (s *Sim) Disk() *crash.Disk { return s.disk }

// Now is the simulated time.
func (s *Sim) Now() time.Time { return s.now }

// Ops is how many operations there were so far.
func (s *Sim) Ops() int { return s.ops }

// Changes are the numbers of the operations that change the disk, make
// something durable or store into a shared page: where cutting the power can
// make a difference.
func (s *Sim) Changes() []int { return s.changes }

// CutAt cuts the power at the n-th operation.
func (s *Sim) CutAt(n int, p crash.Pattern) { s.cuts[n] = p }

// WasCut reports whether the power went in the last Run.
func (s *Sim) WasCut() bool { return s.wasCut }

// Coverage is what happened where.
func (s *Sim) Coverage() Coverage { return s.coverage }

// Run lets the processes run until all have ended or the power is cut. Its
// error is a deadlock, a panic of a process, or too many operations.
func (s *Sim) Run() error {
	s.ended, s.err, s.wasCut, s.running = make(chan struct{}), nil, false, true
	if p := s.pick(); p != nil {
		s.resume(p)
		<-s.ended
	}
	s.running, s.procs, s.timers = false, nil, nil
	return s.err
}

// Cut cuts the power between two Runs.
func (s *Sim) Cut(p crash.Pattern) {
	s.setDisk(s.disk.Crash(p, s.cutRand(p)))
}

// cutRand does not depend on what was drawn before: a cut is the same however
// one came to it.
func (s *Sim) cutRand(p crash.Pattern) *rand.Rand {
	return rand.New(rand.NewPCG(s.seed, uint64(s.ops)<<8|uint64(p)))
}

// cut is the loss of power at an operation, which is in flight.
func (s *Sim) cut(op *wrap.Op, call func() error, p crash.Pattern) {
	rng := s.cutRand(p)
	if op.Kind.Changes() && !op.Kind.Syncs() && (p == crash.KeepAll || rng.IntN(2) == 0) {
		call() // nobody learns how it went
	}
	s.coverage.count(op, "cut "+p.String())
	s.tracef("%d cut %v", s.ops, p)
	s.setDisk(s.disk.Crash(p, rng))
	s.wasCut = true
	s.killAll()
}

// killAll has every process leave at its next operation.
func (s *Sim) killAll() {
	for _, p := range s.procs {
		if !p.done {
			p.killed = true
			p.disk.Kill(p.view)
		}
	}
}

func (s *Sim) fail(err error) {
	s.err = errors.Join(s.err, err)
	s.killAll()
}

func (s *Sim) chance(oneIn int) bool { return oneIn > 0 && s.rng.IntN(oneIn) == 0 }

func (s *Sim) tracef(format string, args ...any) {
	if s.Trace != nil {
		s.Trace(fmt.Sprintf(format, args...))
	}
}
