package fuzz

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/internal/vfs/sim"
)

var (
	seedFlag  = flag.Uint64("seed", 1, "the first seed")
	seedsFlag = flag.Int("seeds", 0, "how many seeds; 0: the test's own choice")
	showOps   = flag.Bool("ops", false, "print each operation of the simulated processes")
	duration  = flag.Duration("duration", 0, "how long TestLong runs; 0: not at all")
)

// world is a simulated machine over several boots, and what is known about it.
type world struct {
	s    *sim.Sim
	h    *history
	rng  *rand.Rand
	acts int // that are left to do in this boot
	kill int
	// What a world may have besides stores.
	editing bool
	cuts    bool // power may be cut in this boot
	archive int64
	keeping *upkeep                                // nil: the store is not maintained
	jumps   func(w *world, boot int) time.Duration // nil: the clock goes on
	swept   int                                    // memories
	ahead   time.Duration                          // how far the clock is ahead in this boot

	watching *watching // nil: nobody watches
	plugged  bool      // the stores have the view of package letters
	writers  *writers  // nil: entries have no writers
	waits    map[*sim.Proc]func()
}

// work opens the store and does operations, sometimes closing and opening it again.
func (w *world) work(p *sim.Proc) {
	a := &actor{h: w.h, name: fmt.Sprintf("%s/%d", p.Name, p.PID), now: func() time.Time { return w.now(p) },
		rng: rand.New(rand.NewPCG(w.rng.Uint64(), 1))}
	if w.editing {
		a.more = harmable
	}
	a.many, a.lasting = w.archive != 0, w.jumps != nil
	a.switching = !w.editing && w.keeping == nil
	o := w.options(p)
	for w.acts > 0 {
		if w.archive != 0 && a.rng.IntN(4) == 0 {
			p.Sleep(2 * time.Hour) // a backup of the index is due
		}
		st, err := w.open(o)
		if err != nil {
			a.failed("open", err)
			return
		}
		a.st = st
		storetest.Inner(st).Engine.Tune().Few = 0 // so that filters ask the words
		a.opened()
		for n := 5 + a.rng.IntN(60); n > 0 && w.acts > 0; n-- {
			w.acts--
			a.step()
		}
		a.close()
	}
}

// now returns the time of day, which may jump from boot to boot.
func (w *world) now(p *sim.Proc) time.Time { return p.Now().Add(w.ahead) }

func (w *world) options(p *sim.Proc) *varve.Options {
	o := options(p.FS, p.Rand(), func() time.Time { return w.now(p) }, p.Wait)
	storetest.Of(o).System.ArchiveBytes = w.archive
	if w.plugged {
		plug(o)
	}
	if w.writers != nil {
		o.Writer = &varve.Writer{Program: "sim", Agent: fmt.Sprintf("%s/%d", p.Name, p.PID)}
	}
	if w.editing {
		o.Listener = w.h.adopts(w.s.Disk)
	}
	if w.jumps != nil {
		o.Listener = func(e varve.Event) {
			if e.Kind == varve.EventSwept {
				w.swept += e.Count
			}
		}
	}
	if w.watching != nil {
		storetest.Of(o).System.Sleep = func(ctx context.Context, d time.Duration) error {
			if waits := w.waits[p]; waits != nil {
				waits()
			}
			return p.Wait(ctx, d)
		}
	}
	return o
}

// run runs one seed: boots of several processes, each ended by a cut or normally, and checked.
func (w *world) run(processes, boots int) error {
	w.s.OnKill = func(p *sim.Proc) {
		w.kill++
		switch p.Name {
		case "editor":
			w.s.Process("editor", w.edits)
		case "keeper":
			w.s.Process("keeper", w.keep)
		case "watcher":
			w.s.Process("watcher", w.watch)
		default:
			w.s.Process("again", w.work)
		}
	}
	for boot := range boots {
		w.acts = 20 + w.rng.IntN(150)
		if w.jumps != nil {
			w.ahead = w.jumps(w, boot)
		}
		w.s.Odds = sim.Odds{Switch: 2 + w.rng.IntN(40), Stop: 3000, Kill: []int{0, 4000, 1500}[w.rng.IntN(3)],
			Cut: []int{0, 1000, 5000}[w.rng.IntN(3)]}
		w.cuts = w.s.Odds.Cut > 0
		for i := range processes {
			w.s.Process(fmt.Sprint("p", i), w.work)
		}
		if w.editing {
			w.s.Process("editor", w.edits)
		}
		if w.keeping != nil {
			w.s.Process("keeper", w.keep)
		}
		if w.watching != nil {
			w.s.Process("watcher", w.watch)
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
		if w.keeping != nil {
			w.lookAround(p)
		}
		recovery(w.h, p.FS, w.options(p), deep)
		if w.writers != nil {
			w.writers.look(w, p)
		}
		if w.watching != nil {
			w.watched(p)
		}
		if deep {
			w.h.kept(p.FS, w.kill > 0, w.archive != 0)
		}
	})
}

func runSeed(seed uint64, processes int, change func(*world)) (*world, error) {
	w := &world{s: sim.New(seed), h: newHistory(), rng: rand.New(rand.NewPCG(seed, 99))}
	w.h.labelled = true
	if change != nil {
		change(w)
	}
	w.s.MaxOps = 3_000_000
	if *showOps {
		w.s.Trace = func(line string) { fmt.Println(line) }
	}
	w.s.StopFor = 2 * time.Second
	boots := 1 + w.rng.IntN(4)
	return w, w.run(processes, boots)
}

type simTally struct {
	seeds, ops, kills, writes, looks, swept int
	did                                     map[string]int // by keepers
	coverage                                sim.Coverage
}

func (n *simTally) String() string {
	t := tally{coverage: n.coverage}
	kept := ""
	if len(n.did) > 0 {
		kept = "; kept: " + sorted(n.did)
	}
	return fmt.Sprintf("%d seeds, %d operations of the disk, %d kills, %d writes, %d looks; %s%s", n.seeds, n.ops, n.kills,
		n.writes, n.looks, t.reach(), kept)
}

func (n *simTally) seed(t *testing.T, name string, seed uint64, processes int, change func(*world)) {
	w, err := runSeed(seed, processes, change)
	n.seeds++
	n.ops += w.s.Ops()
	n.kills += w.kill
	n.writes += len(w.h.writes)
	n.looks += len(w.h.seen)
	if w.keeping != nil {
		for what, times := range w.keeping.did {
			n.did[what] += times
		}
	}
	n.swept += w.swept
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

func simulate(t *testing.T, processes, seeds int, change func(*world)) *simTally {
	t.Parallel()
	n := &simTally{did: map[string]int{}, coverage: sim.Coverage{}}
	for i := range howMany(seeds) {
		if n.seed(t, t.Name(), *seedFlag+uint64(i), processes, change); t.Failed() {
			break
		}
	}
	t.Log(n)
	return n
}

// howMany returns how many seeds a test runs: with VARVE_LONG=1 the requested number, else a few of
// them; -seeds sets another number.
func howMany(seeds int) int {
	if *seedsFlag > 0 {
		return *seedsFlag
	}
	return max(1, seeds/proofs.Every(25))
}

// simulateSeeds runs workloads of a kind, one for each seed: on a machine, with counts of what was done.
func simulateSeeds(t *testing.T, seeds int, of func(seed uint64) (s *sim.Sim, did map[string]int, run func() error)) {
	t.Parallel()
	all := map[string]int{}
	for i := range howMany(seeds) {
		seed := *seedFlag + uint64(i)
		s, did, run := of(seed)
		s.MaxOps, s.StopFor = 3_000_000, 2*time.Second
		if *showOps {
			s.Trace = func(line string) { fmt.Println(line) }
		}
		err := run()
		reach(s.Coverage())
		for what, n := range did {
			all[what] += n
		}
		if err != nil {
			t.Errorf("seed %d: %v\n\tgo test ./fuzz -run %s -seed %d -seeds 1", seed, err, t.Name(), seed)
			break
		}
	}
	t.Log(all)
}

func TestSimOne(t *testing.T) { simulate(t, 1, 150, nil) }

func TestSimThree(t *testing.T) { simulate(t, 3, 250, nil) }

// TestLong continues until the time is over or a seed fails.
func TestLong(t *testing.T) {
	if *duration == 0 {
		return // only on request: TestSim has the seeds of the daily run
	}
	n := &simTally{did: map[string]int{}, coverage: sim.Coverage{}}
	began := time.Now()
	kinds := []struct {
		name      string
		processes int
		change    func(*world)
	}{
		{"TestSimOne", 1, nil}, {"TestSimThree", 3, nil}, {"TestSimTwo", 2, nil},
		{"TestSimLacking", 2, lacking}, {"TestSimEdits", 2, editing}, {"TestSimEditsLacking", 2, editingLacking},
		{"TestSimUpkeep", 2, keeping}, {"TestSimUpkeepLacking", 2, keepingLacking}, {"TestSimWatch", 2, watchers},
	}
	for seed := *seedFlag; time.Since(began) < *duration && !t.Failed(); seed++ {
		k := kinds[seed%uint64(len(kinds))]
		n.seed(t, k.name, seed, k.processes, k.change)
	}
	t.Log(n)
	for _, what := range []string{"switch", "kill", "stop"} {
		t.Logf("never a %s at %d of the places that change something", what, len(n.coverage.Missing(what)))
	}
}

func TestSimTwo(t *testing.T) { simulate(t, 2, 100, nil) }

// lacking makes a volume that lacks features, an archive that must make room, and lets hours pass.
func lacking(w *world) {
	w.s.Disk().SetLacks(crash.Lacks{
		Exchange: w.rng.IntN(2) == 0, Link: w.rng.IntN(2) == 0, Lease: w.rng.IntN(2) == 0, Barrier: w.rng.IntN(2) == 0,
		Unnamed: w.rng.IntN(2) == 0,
	})
	w.archive = []int64{-1, 1, 100 << 10}[w.rng.IntN(3)]
}

func TestSimLacking(t *testing.T) { simulate(t, 2, 80, lacking) }

// jumpingAhead lets hours pass between boots, so that expired memories are swept, by processes that are
// stopped, killed and cut.
func jumpingAhead(w *world) {
	w.jumps = func(w *world, _ int) time.Duration {
		return w.ahead + []time.Duration{0, 50 * time.Minute, 70 * time.Minute, 3 * time.Hour,
			40 * 24 * time.Hour}[w.rng.IntN(5)]
	}
}

// jumpingBack sets the clock years ahead in every other boot. Everything expires, and returns when the
// clock is corrected.
func jumpingBack(w *world) {
	w.h.jumps = true
	w.jumps = func(_ *world, boot int) time.Duration {
		return time.Duration(boot%2) * 20 * 365 * 24 * time.Hour
	}
}

func TestSimClockAhead(t *testing.T) {
	if n := simulate(t, 2, 30, jumpingAhead); n.swept == 0 && n.seeds > 10 {
		t.Error("nothing was swept")
	}
}

func TestSimClockBack(t *testing.T) { simulate(t, 2, 30, jumpingBack) }

func editing(w *world) { w.editing = true }

func editingLacking(w *world) {
	lacking(w)
	editing(w)
}

func TestSimEdits(t *testing.T) { simulate(t, 2, 100, editing) }

func TestSimEditsLacking(t *testing.T) { simulate(t, 2, 80, editingLacking) }
