package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// Odds are average intervals: an event happens at one in this many operations; 0 means never.
type Odds struct {
	Switch int // another process runs
	Stop   int // a process is stopped, for up to StopFor
	Kill   int // a process is killed
	Cut    int // the power fails, with one of Patterns
}

// Sim is a simulated machine over several boots. Exported fields are set before Run.
type Sim struct {
	Odds     Odds
	Patterns []crash.Pattern // patterns of random power failures; New sets all of them
	StopFor  time.Duration   // maximum duration of a stop; New sets 100 ms
	Step     time.Duration   // simulated duration of an operation; New sets 10 µs
	MaxOps   int             // number of operations above which a run is treated as a livelock; New sets 20,000,000
	// Trace is called with a line for each operation and each event of the scheduler.
	Trace func(string)
	// OnKill is called after a process was killed at random; it may start another one.
	OnKill func(p *Proc)

	seed     uint64
	rng      *rand.Rand
	disk     *crash.Disk
	now      time.Time
	ops      int
	changes  []int
	cuts     map[int]crash.Pattern
	procs    []*Proc // processes of this boot, in the order of creation
	running  bool
	wasCut   bool
	ended    chan struct{}
	err      error
	timers   []*deadline
	sites    *wrap.FS
	coverage Coverage
}

// New returns a machine with an empty disk.
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

// Disk returns the machine's disk in this boot.
func (s *Sim) Disk() *crash.Disk { return s.disk }

// Now returns the simulated time.
func (s *Sim) Now() time.Time { return s.now }

// Ops returns the number of operations so far.
func (s *Sim) Ops() int { return s.ops }

// Changes returns the numbers of the operations that change the disk, make something durable or store into a shared
// page: those at which a power failure can make a difference.
func (s *Sim) Changes() []int { return s.changes }

// CutAt makes the power fail at the n-th operation. The changes that p selects survive.
func (s *Sim) CutAt(n int, p crash.Pattern) { s.cuts[n] = p }

// WasCut reports whether the power failed in the last Run.
func (s *Sim) WasCut() bool { return s.wasCut }

// Coverage returns the coverage so far.
func (s *Sim) Coverage() Coverage { return s.coverage }

// Run runs the processes until all have ended or the power fails. It returns an error for a deadlock, a panic of a
// process, or too many operations.
func (s *Sim) Run() error {
	s.ended, s.err, s.wasCut, s.running = make(chan struct{}), nil, false, true
	if p := s.pick(); p != nil {
		s.resume(p)
		<-s.ended
	}
	s.running, s.procs, s.timers = false, nil, nil
	return s.err
}

// Cut simulates a power failure between two calls of Run.
func (s *Sim) Cut(p crash.Pattern) {
	s.setDisk(s.disk.Crash(p, s.cutRand(p)))
}

// cutRand returns random numbers that depend only on the seed, the number of operations and the pattern. So a power
// failure at the same operation always has the same result.
func (s *Sim) cutRand(p crash.Pattern) *rand.Rand {
	return rand.New(rand.NewPCG(s.seed, uint64(s.ops)<<8|uint64(p)))
}

// cut simulates a power failure during an operation.
func (s *Sim) cut(op *wrap.Op, call func() error, p crash.Pattern) {
	rng := s.cutRand(p)
	if op.Kind.Changes() && !op.Kind.Syncs() && (p == crash.KeepAll || rng.IntN(2) == 0) {
		call() // its result is lost
	}
	s.coverage.count(op, "cut "+p.String())
	s.tracef("%d cut %v", s.ops, p)
	s.setDisk(s.disk.Crash(p, rng))
	s.wasCut = true
	s.killAll()
}

// killAll makes every process end at its next operation.
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
