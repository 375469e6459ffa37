package fuzz

import (
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/internal/vfs/sim"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

var (
	cutFlag       = flag.Int("cut", 0, "cut the script before this operation only")
	patternFlag   = flag.String("pattern", "", "with this pattern only")
	secondFlag    = flag.Int("second", 0, "and its recovery before this operation")
	secondPattern = flag.String("second-pattern", "", "with this pattern only")
	stride        = flag.Int("stride", 0, "cut at every so many changing operations only; 0: the test's own choice")
)

// script is a fixed workload: put, replace, delete, batch, conditional put,
// flush, merge, roll, recycle, close, reopen.
func script(m *machine, h *history, faulty bool) (errs []error) {
	a := &actor{h: h, name: "script", now: m.now, faulty: faulty}
	open := func() bool {
		_, o := m.process("script")
		st, err := varve.Open(ctx, dir, o)
		if err != nil && faulty {
			a.failed("open", err)
			st, err = varve.Open(ctx, dir, o) // the fault has passed
		}
		if err != nil {
			a.failed("open", err)
			return false
		}
		a.st = st
		return true
	}
	if !open() {
		return a.errs
	}
	a.put("a", 100, "s1", 0)
	a.put("b", 5000, "s1", time.Hour)
	first, _ := a.get("a")
	a.put("a", 300, "s2", 0)
	a.putAbsent("c", 10)
	a.putAbsent("c", 10) // refused
	a.putIf("a", 11, first)
	if now, err := a.get("a"); err == nil {
		a.putIf("a", 12, now)
	}
	a.batch(change{id: "d", size: 700}, change{id: "b", del: true}, change{id: "e", size: 1500, session: "s1"})
	a.flush()
	a.put("a", 20000, "", 0)
	a.delete("c")
	a.delete("c") // refused
	a.update("d", 50)
	a.flush()
	a.batch(change{id: "f", size: 2000}, change{id: "a", size: 30}, change{id: "g", size: 2500}, change{id: "e", del: true})
	for i := range 3 { // whose first entries may survive without the others
		a.batch(change{id: "f", size: 20 + i}, change{id: "g", size: 9000}, change{id: "e", size: 1000})
	}
	a.move("d", "d2", 40)
	for i := range 5 { // behind BacklogBytes, and into the next segments
		a.put(fmt.Sprint("big", i%3), 19000, "s2", 0)
	}
	a.get("big1")
	a.close()
	if !open() {
		return a.errs
	}
	a.get("a")
	a.put("h", 64, "", 0)
	for i := range 3 {
		a.put(fmt.Sprint("big", i), 19000, "", 0)
	}
	a.flush()
	a.delete("big0")
	a.put("big1", 80, "s1", 0)
	a.flush()
	a.list()
	a.put("i", 64, "", 0)
	a.close()
	return a.errs
}

// A base of 256 KiB and more gets deltas. Long session ids make such a base from few memories.
func prepareLarge(m *machine, h *history) {
	a := &actor{h: h, name: "prepare", now: m.now}
	_, o := m.process("prepare")
	st, err := varve.Open(ctx, dir, o)
	if err != nil {
		a.failed("open", err)
		return
	}
	a.st = st
	for i := 0; i < largeCount; i += 4 {
		var list []change
		for k := i; k < i+4; k++ {
			list = append(list, change{id: long("m", k), size: 20, session: long("s", k)})
		}
		a.batch(list...)
	}
	h.bulk = map[string]bool{}
	for i := 20; i < largeCount; i++ {
		h.bulk[long("m", i)] = true
	}
	a.flush()
	a.close()
}

const largeCount = 64

// long returns a name of the maximum length.
func long(prefix string, i int) string {
	name := fmt.Sprintf("%s%02d-", prefix, i)
	return name + filling[i:i+1000]
}

// scriptLarge works on such a store: deltas, deltas over deltas, merges, tombstones.
func scriptLarge(m *machine, h *history) {
	a := &actor{h: h, name: "large", now: m.now}
	open := func() bool {
		_, o := m.process("large")
		st, err := varve.Open(ctx, dir, o)
		if err != nil {
			a.failed("open", err)
			return false
		}
		a.st = st
		return true
	}
	if !open() {
		return
	}
	a.delete(long("m", 3))
	a.put(long("m", 4), 60, long("t", 4), time.Hour)
	for i := range 4 { // the first delta
		a.put(fmt.Sprint("p", i), 14000, "s1", 0)
	}
	a.get(long("m", 3))
	a.put(long("m", 5), 60, "", 0)
	a.delete(long("m", 6))
	a.put(long("m", 3), 100, "s1", 0)
	for i := range 4 { // one over it
		a.put(fmt.Sprint("q", i), 14000, "s2", 0)
	}
	a.close()
	if !open() {
		return
	}
	a.get(long("m", 5))
	a.batch(change{id: long("m", 7), size: 10, session: long("u", 7)}, change{id: long("m", 8), size: 10, session: "s1"}, change{id: "p0", del: true})
	for i := range 10 { // past an eighth: merged
		a.put(long("m", 9+i), 2500, long("v", i), 0)
	}
	for i := range 4 {
		a.put(fmt.Sprint("p", i), 14000, "s1", 0)
	}
	a.list()
	a.close()
}

// patternsFor returns the patterns for one cut.
func patternsFor(t *testing.T) []crash.Pattern {
	if *patternFlag == "" {
		return crash.Patterns()
	}
	for _, p := range crash.Patterns() {
		if p.String() == *patternFlag {
			return []crash.Pattern{p}
		}
	}
	t.Fatalf("no pattern %q", *patternFlag)
	return nil
}

// tally counts what was cut.
type tally struct {
	changes, cuts, nested, torn int
	coverage                    sim.Coverage
	second                      sim.Coverage // of recoveries that were cut
}

// secondReach is reach for the second cuts, with the places that still lack patterns.
func (n *tally) secondReach() (string, []string) {
	pairs, places, lacking := 0, 0, []string{}
	for at, m := range n.second {
		places++
		pairs += len(m) - 1 // "" is that it was passed
		if len(m)-1 < len(crash.Patterns()) {
			lacking = append(lacking, fmt.Sprintf("%s %s: %d patterns in %d passes", at.Site, at.Kind, len(m)-1, m[""]))
		}
	}
	slices.Sort(lacking)
	return fmt.Sprintf("%d call sites of recoveries, %d call sites × patterns cut a second time", places, pairs), lacking
}

// reach returns how many places of the engine were reached, and cut in how many ways.
func (n *tally) reach() string {
	reached, pairs := 0, 0
	for at, m := range n.coverage {
		if !at.Kind.Changes() {
			continue
		}
		reached++
		for what := range m {
			if strings.HasPrefix(what, "cut ") {
				pairs++
			}
		}
	}
	return fmt.Sprintf("%d changing call sites, %d call sites × patterns", reached, pairs)
}

func (n *tally) String() string {
	return fmt.Sprintf("%d changing operations, %d cuts (and %d in a recovery), %d torn tails; %s",
		n.changes, n.cuts, n.nested, n.torn, n.reach())
}

// cutEverywhere runs work on a machine that prepare has filled, and cuts it before every changing
// operation. With several parts, each makes its share of the cuts.
func cutEverywhere(t *testing.T, name string, part, parts int, prepare, work func(m *machine, h *history)) *tally {
	n := &tally{coverage: sim.Coverage{}, second: sim.Coverage{}}
	m, h := newMachine(), newHistory()
	if prepare != nil {
		prepare(m, h)
	}
	m.coverage = n.coverage
	step := max(1, *stride)
	if *stride == 0 {
		step = min(proofs.Every(97), 388) // the shorter scripts have some 500 operations
	}
	patterns := patternsFor(t)
	failures := 0
	one := func(op *wrap.Op, p crash.Pattern) {
		f, fh := m.future(p, 1), h.clone()
		fh.powerLost()
		m.count(op, "cut "+p.String())
		n.cuts++
		// A second cut, within the recovery of some of them.
		every := 11
		if prepare != nil {
			every = 7
		}
		if (m.ops+int(p))%every == 0 || *secondFlag != 0 || *stride == 1 {
			n.nested += n.cutRecovery(f, fh, m.ops, t, name, p)
		}
		// Some are recovered, written to, and cut again before anything is flushed: the position that
		// the first recovery treated as the end must not get another meaning then.
		if (m.ops+int(p))%5 == 1 {
			f = touchAndGo(f, fh)
		}
		fsys, o := f.process("recovery")
		if recovery(fh, fsys, o, (m.ops+int(p))%4 == 0) {
			n.torn++
		}
		if wrong := fh.verdict(); len(wrong) > 0 {
			failures++
			t.Errorf("cut before operation %d (%s %s at %s), %s:\n%s\n\tgo test ./fuzz -run %s -cut %d -pattern %s", m.ops, op.Kind, op.Path, m.sites.place(op).Site, p, joinWrong(wrong), name, m.ops, p)
			if failures >= 5 {
				t.FailNow()
			}
		}
	}
	m.hook = func(_ *crash.Process, op *wrap.Op) {
		if !op.Kind.Changes() {
			return
		}
		n.changes++
		if *cutFlag != 0 && m.ops != *cutFlag || *cutFlag == 0 && n.changes%step != 0 || n.changes/step%parts != part {
			return
		}
		if *stride == 0 && *cutFlag == 0 && (op.Kind == wrap.Store || op.Kind == wrap.CompareAndSwap) {
			one(op, patterns[n.changes%len(patterns)]) // of a page that is ignored after a boot; -stride 1 for all
			return
		}
		for i, p := range patterns {
			if *stride == 0 && *cutFlag == 0 && prepare != nil && (n.changes+i)%3 != 0 {
				continue // the large one takes its time
			}
			one(op, p)
		}
	}
	work(m, h)
	if wrong := h.verdict(); len(wrong) > 0 {
		t.Fatalf("without any cut:\n%s", joinWrong(wrong))
	}
	return n
}

func touchAndGo(f *machine, fh *history) *machine {
	_, o := f.process("touch and go")
	a := &actor{h: fh, name: "touch and go", now: f.now}
	var err error
	if a.st, err = varve.Open(ctx, dir, o); err != nil {
		a.failed("open", err)
		return f
	}
	a.put("touched", 40, "", 0)
	a.batch(change{id: "touched too", size: 40}, change{id: "a", size: 40})
	next := f.future(crash.KeepAll, 3)
	fh.powerLost()
	a.st.Close() // in a history that is not checked: the cache keeps an open store
	return next
}

// seconds returns secondHere, with how many patterns one place of one recovery is cut, and secondOnce,
// how many cuts one recovery gets if that place is passed often: so the cuts are spread over many
// recoveries. With -stride 1 all of them are made.
func seconds() (secondHere, secondOnce int) {
	if proofs.Long() {
		return 3, 12
	}
	return 1, 4
}

// cutRecovery also cuts the recovery of a machine, at those of its operations whose places were not cut
// with each pattern yet; contents are compared as after the first. The machine itself stays unchanged:
// the recovery works on a copy.
func (n *tally) cutRecovery(f *machine, fh *history, salt int, t *testing.T, name string, first crash.Pattern) int {
	copyOf := f.future(crash.KeepAll, 0) // nothing is pending: it would be the same again
	ch := fh.clone()
	changes, cuts := 0, 0
	all := crash.Patterns()
	secondHere, secondOnce := seconds()
	cut := func(op *wrap.Op, p crash.Pattern) {
		g, gh := copyOf.future(p, 2), ch.clone()
		gh.powerLost()
		cuts++
		fsys, o := g.process("second recovery")
		recovery(gh, fsys, o, (salt+cuts)%5 == 0)
		if wrong := gh.verdict(); len(wrong) > 0 {
			t.Fatalf("cut before operation %d, %s, and its recovery before operation %d (%s %s at %s), %s:\n%s\n\tgo test ./fuzz -run %s -cut %d -pattern %s -second %d -second-pattern %s",
				salt, first, copyOf.ops, op.Kind, op.Path, f.sites.place(op).Site, p, joinWrong(wrong), name, salt, first, copyOf.ops, p)
		}
	}
	copyOf.hook = func(_ *crash.Process, op *wrap.Op) {
		if !op.Kind.Changes() || op.Kind == wrap.Store || op.Kind == wrap.CompareAndSwap {
			return
		}
		if changes++; *secondFlag != 0 {
			for _, p := range all {
				if copyOf.ops == *secondFlag && (*secondPattern == "" || p.String() == *secondPattern) {
					cut(op, p)
				}
			}
			return
		}
		at := copyOf.sites.place(op)
		m := n.second[at]
		if m == nil {
			m = map[string]int{}
			n.second[at] = m
		}
		m[""]++
		here := 0
		for i := range all {
			p := all[(i+changes+salt)%len(all)]
			if *stride != 1 && (m[p.String()] > 0 || here == secondHere || cuts >= secondOnce && m[""] > 20) {
				continue
			}
			m[p.String()]++
			here++
			cut(op, p)
		}
	}
	fsys, o := copyOf.process("recovery")
	recovery(ch, fsys, o, false)
	return cuts
}

func TestScript(t *testing.T) {
	proofs.OneGoroutine(t)
	both := &tally{coverage: sim.Coverage{}, second: sim.Coverage{}}
	for _, c := range []struct {
		name          string
		prepare, work func(m *machine, h *history)
	}{
		{"small", nil, func(m *machine, h *history) { script(m, h, false) }},
		{"large", prepareLarge, scriptLarge},
	} {
		if proofs.Everyday() && c.prepare != nil {
			continue // it takes seconds without any cut
		}
		t.Run(c.name, func(t *testing.T) {
			n := &tally{coverage: sim.Coverage{}, second: sim.Coverage{}}
			parts := make([]*tally, 2)
			t.Run("parts", func(t *testing.T) {
				for i := range parts {
					t.Run(fmt.Sprint(i), func(t *testing.T) {
						t.Parallel()
						parts[i] = cutEverywhere(t, "TestScript/"+c.name, i, len(parts), c.prepare, c.work)
					})
				}
			})
			for _, p := range parts {
				n.add(p)
			}
			t.Log(n)
			both.add(n)
		})
	}
	t.Log("both:", both)
	second, lacking := both.secondReach()
	t.Logf("%s; not with each pattern: %s", second, strings.Join(lacking, ", "))
	reach(both.coverage)
	for at, m := range both.coverage {
		if at.Kind.Changes() && len(m) == 1 && m[""] > 0 {
			t.Log("never cut:", at.Site, at.Kind)
		}
	}
}

func (n *tally) add(o *tally) {
	if o == nil {
		return
	}
	n.changes, n.cuts, n.nested, n.torn = max(n.changes, o.changes), n.cuts+o.cuts, n.nested+o.nested, n.torn+o.torn
	n.coverage.Add(o.coverage)
	n.second.Add(o.second)
}

// TestScriptKilled kills the process before each changing operation; a write may be done in part.
// Another process opens the store in the same boot. The daily run tries some of them, and each write in
// which a log begins.
func TestScriptKilled(t *testing.T) {
	proofs.OneGoroutine(t)
	t.Parallel()
	count := newMachine()
	total, begun := 0, false
	var at []int
	begins := map[int]bool{}
	count.hook = func(_ *crash.Process, op *wrap.Op) {
		total++
		if op.Kind.Changes() {
			at = append(at, total)
		}
		begun = begun || filepath.Base(op.Path) == "checkpoint" && op.Kind == wrap.Write
		if !begun && op.Kind == wrap.Write && filepath.Base(filepath.Dir(op.Path)) == "wal" {
			begins[total] = true
		}
	}
	script(count, newHistory(), false)
	step := max(1, *stride)
	if *stride == 0 {
		step = proofs.Every(101)
	}
	kills := 0
	for i := range at {
		if *cutFlag != 0 && at[i] != *cutFlag || i%step != 0 && !begins[at[i]] {
			continue
		}
		kills++
		m, h := newMachine(), newHistory()
		m.killAt, m.tear = at[i], i%2 == 0 || begins[at[i]]
		done := make(chan struct{})
		go func() {
			defer close(done)
			script(m, h, false)
		}()
		<-done
		fsys, o := m.process("recovery")
		recovery(h, fsys, o, i%4 == 0)
		m = m.future(crash.LoseAll, 1) // what the next process was told must be durable
		h.powerLost()
		fsys, o = m.process("after the loss of power")
		recovery(h, fsys, o, false)
		if wrong := h.verdict(); len(wrong) > 0 {
			t.Errorf("killed before operation %d:\n%s\n\tgo test ./fuzz -run TestScriptKilled -stride 1 -cut %d", at[i], joinWrong(wrong), at[i])
		}
	}
	t.Logf("%d operations, %d change something, %d kills", total, len(at), kills)
	if kills == 0 || len(begins) == 0 {
		t.Error("nothing was tried")
	}
}
