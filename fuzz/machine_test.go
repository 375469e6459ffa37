package fuzz

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/internal/vfs/sim"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// machine is a disk with one process at a time. Unlike with package sim, its state can be examined
// before each operation, in as many futures as there are patterns, without repeating the operations
// before it.
type machine struct {
	disk     *crash.Disk
	clock    time.Time
	ops      int
	started  int // processes
	hook     func(view *crash.Process, op *wrap.Op)
	coverage sim.Coverage // nil: not wanted
	sites    sites
	fault    func(op *wrap.Op) error
	killAt   int  // the process is killed before this operation
	tear     bool // which is done in part, if it is a write
	slept    func()
	views    map[string]*crash.Process
}

// partly is a fault that executes a part of the operation, or all of it, and returns an error
// nevertheless.
type partly struct {
	short bool // half of the bytes
	err   error
}

func (p *partly) Error() string {
	if p.short {
		return fmt.Sprintf("half of it, then %v", p.err)
	}
	return fmt.Sprintf("done, and yet %v", p.err)
}

func (p *partly) Unwrap() error { return p.err }

func (p *partly) run(op *wrap.Op, call func() error) error {
	if p.short {
		op.Size /= 2
	}
	if err := call(); err != nil {
		return err
	}
	return fmt.Errorf("%s %s: %w", op.Kind, op.Path, p.err)
}

const mostOps = 1 << 20

func newMachine() *machine {
	m := &machine{clock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), sites: sites{}}
	m.use(crash.New())
	return m
}

func (m *machine) use(d *crash.Disk) {
	m.disk = d
	d.SetClock(m.now)
}

func (m *machine) now() time.Time { return m.clock }

// future returns the machine as the next boot finds it.
func (m *machine) future(p crash.Pattern, seed uint64) *machine {
	f := &machine{clock: m.clock, started: m.started, sites: m.sites}
	f.use(m.disk.Crash(p, rand.New(rand.NewPCG(seed, uint64(m.ops)<<8|uint64(p)))))
	return f
}

func (m *machine) count(op *wrap.Op, what string) {
	if m.coverage == nil {
		return
	}
	at := m.sites.place(op)
	if m.coverage[at] == nil {
		m.coverage[at] = map[string]int{}
	}
	m.coverage[at][what]++
}

// process starts a process and returns options for a store in it.
func (m *machine) process(name string) (vfs.FS, *varve.Options) {
	m.started++
	view := m.disk.Process(name)
	if m.views == nil {
		m.views = map[string]*crash.Process{}
	}
	m.views[name] = view
	fsys := wrap.New(view, func(op *wrap.Op, call func() error) error {
		m.clock = m.clock.Add(10 * time.Microsecond)
		if m.ops++; m.ops > mostOps {
			panic("no end in sight: a livelock?")
		}
		m.count(op, "")
		if m.ops == m.killAt {
			if m.tear && op.Kind == wrap.Write && op.Size > 1 {
				op.Size /= 2
				call()
			}
			m.disk.Kill(view)
			runtime.Goexit()
		}
		if m.hook != nil {
			m.hook(view, op)
		}
		if m.fault != nil {
			var part *partly
			if err := m.fault(op); errors.As(err, &part) {
				return part.run(op, call)
			} else if err != nil {
				if op.Kind.Syncs() && op.Kind != wrap.SyncDir {
					return op.FailSync(err)
				}
				if op.Kind == wrap.Close {
					call()
				}
				return fmt.Errorf("%s %s: %w", op.Kind, op.Path, err)
			}
		}
		return call()
	})
	var seed [32]byte
	seed[0], seed[1] = byte(m.started), byte(m.started>>8)
	return fsys, options(fsys, rand.NewChaCha8(seed), m.now, func(ctx context.Context, d time.Duration) error {
		m.clock = m.clock.Add(d)
		if m.slept != nil {
			m.slept()
		}
		return ctx.Err()
	})
}

// options makes a store small: little work reaches spills, merges, rolls and recycling.
func options(fsys vfs.FS, rnd io.Reader, now func() time.Time,
	sleep func(context.Context, time.Duration) error) *varve.Options {
	return storetest.In(&varve.Options{
		Clock: now, SegmentSize: 64 << 10, NoBackground: true, CacheBytes: 256 << 10,
	}, storetest.Environment{System: vfs.System{
		FS: fsys, Inline: true, Rand: rnd, Sleep: sleep,
		SpillBytes: 12 << 10, BacklogBytes: 40 << 10, RoundBytes: 8 << 10, TempFiles: 5, Unnamed: 2, SmallVectors: 1,
	}})
}
