package fuzz

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/vfs/sim"
)

var (
	seedFlag  = flag.Uint64("seed", 1, "the first seed")
	seedsFlag = flag.Int("seeds", 0, "how many seeds; 0: the test's own choice")
	duration  = flag.Duration("duration", 0, "how long TestLong runs; 0: not at all")
)

// world is a simulated machine over several boots, and what is known of it.
type world struct {
	s    *sim.Sim
	h    *history
	rng  *rand.Rand
	acts int // that are left to do in this boot
	kill int
}

// work opens the store and does things until enough is done, sometimes closing
// and opening it again.
func (w *world) work(p *sim.Proc) {
	a := &actor{h: w.h, name: fmt.Sprintf("%s/%d", p.Name, p.PID), now: p.Now, rng: rand.New(rand.NewPCG(w.rng.Uint64(), 1))}
	o := options(p.FS, p.Rand(), p.Now, p.Wait)
	for w.acts > 0 {
		st, err := varve.Open(ctx, dir, o)
		if err != nil {
			a.failed("open", err)
			return
		}
		a.st = st
		a.opened()
		for n := 5 + a.rng.IntN(60); n > 0 && w.acts > 0; n-- {
			w.acts--
			a.step()
		}
		a.close()
	}
}

// run is one seed: boots of so many processes, each ended by a cut or in peace,
// and looked at.
func (w *world) run(processes, boots int) error {
	w.s.OnKill = func(*sim.Proc) {
		w.kill++
		w.s.Process("again", w.work)
	}
	for boot := range boots {
		w.acts = 20 + w.rng.IntN(150)
		w.s.Odds = sim.Odds{Switch: 2 + w.rng.IntN(40), Stop: 3000, Kill: []int{0, 4000, 1500}[w.rng.IntN(3)], Cut: []int{0, 1000, 5000}[w.rng.IntN(3)]}
		for i := range processes {
			w.s.Process(fmt.Sprint("p", i), w.work)
		}
		if err := w.s.Run(); err != nil {
			return fmt.Errorf("boot %d: %w", boot, err)
		}
		if !w.s.WasCut() {
			if w.rng.IntN(2) == 0 {
				w.look(boot, false) // after kills only
				if err := w.s.Run(); err != nil {
					return fmt.Errorf("boot %d: %w", boot, err)
				}
			}
			w.s.Cut(w.s.Patterns[w.rng.IntN(len(w.s.Patterns))])
		}
		w.h.powerLost()
		// The recovery may be cut too, once.
		w.s.Odds = sim.Odds{Cut: []int{0, 1500}[w.rng.IntN(2)]}
		for range 5 {
			w.look(boot, true)
			if err := w.s.Run(); err != nil {
				return fmt.Errorf("recovery of boot %d: %w", boot, err)
			}
			if !w.s.WasCut() {
				break
			}
			w.h.powerLost()
			w.s.Odds = sim.Odds{}
		}
		if wrong := w.h.verdict(); len(wrong) > 0 {
			return fmt.Errorf("boot %d:\n%s", boot, joinWrong(wrong))
		}
	}
	return nil
}

func (w *world) look(boot int, deep bool) {
	if !deep {
		w.s.Odds = sim.Odds{}
	}
	w.s.Process("look", func(p *sim.Proc) {
		recovery(w.h, p.FS, options(p.FS, p.Rand(), p.Now, p.Wait), deep)
	})
}

func runSeed(seed uint64, processes int) (*world, error) {
	w := &world{s: sim.New(seed), h: newHistory(), rng: rand.New(rand.NewPCG(seed, 99))}
	w.s.MaxOps = 3_000_000
	w.s.StopFor = 2 * time.Second
	boots := 1 + w.rng.IntN(4)
	return w, w.run(processes, boots)
}

type simTally struct {
	seeds, ops, kills, writes, looks int
	coverage                         sim.Coverage
}

func (n *simTally) String() string {
	t := tally{coverage: n.coverage}
	return fmt.Sprintf("%d seeds, %d operations of the disk, %d kills, %d writes, %d looks; %s", n.seeds, n.ops, n.kills, n.writes, n.looks, t.reach())
}

func (n *simTally) seed(t *testing.T, name string, seed uint64, processes int) {
	w, err := runSeed(seed, processes)
	n.seeds++
	n.ops += w.s.Ops()
	n.kills += w.kill
	n.writes += len(w.h.writes)
	n.looks += len(w.h.seen)
	n.coverage.Add(w.s.Coverage())
	reach(w.s.Coverage())
	if err != nil {
		var d *sim.DeadlockError
		what := "failed"
		if errors.As(err, &d) {
			what = "hangs"
		}
		t.Errorf("seed %d %s: %v\n\tgo test ./fuzz -run %s -seed %d -seeds 1", seed, what, err, name, seed)
	}
}

func simulate(t *testing.T, processes, seeds int) {
	if testing.Short() {
		seeds = max(1, seeds/25)
	}
	if *seedsFlag > 0 {
		seeds = *seedsFlag
	}
	n := &simTally{coverage: sim.Coverage{}}
	for i := range seeds {
		if n.seed(t, t.Name(), *seedFlag+uint64(i), processes); t.Failed() {
			break
		}
	}
	t.Log(n)
}

func TestSimOne(t *testing.T) { simulate(t, 1, 250) }

func TestSimThree(t *testing.T) { simulate(t, 3, 400) }

// TestLong goes on until the time is over or something breaks.
func TestLong(t *testing.T) {
	if *duration == 0 {
		return // only by hand: TestSim has the seeds of every day
	}
	n := &simTally{coverage: sim.Coverage{}}
	began := time.Now()
	for seed := *seedFlag; time.Since(began) < *duration && !t.Failed(); seed++ {
		processes := []int{1, 3, 2}[seed%3]
		n.seed(t, fmt.Sprintf("TestSim%s", map[int]string{1: "One", 2: "Two", 3: "Three"}[processes]), seed, processes)
	}
	t.Log(n)
	for _, what := range []string{"switch", "kill", "stop"} {
		t.Logf("never a %s at %d of the places that change something", what, len(n.coverage.Missing(what)))
	}
}

func TestSimTwo(t *testing.T) { simulate(t, 2, 150) }
