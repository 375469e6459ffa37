//go:build unix

package replaced

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/varve-db/varve/internal/proofs"
)

// cell is a row of the table.
type cell struct{ event, state, kind string }

// tally is the result of the runs of one cell.
type tally struct {
	runs, red, hit int
	judgement
	classes map[string]int
}

// table collects the tallies of all cells.
type table struct {
	mu    sync.Mutex
	cells map[cell]*tally
	began time.Time
}

func (tb *table) add(c cell, tr *trial) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	t := tb.cells[c]
	if t == nil {
		t = &tally{classes: map[string]int{}}
		tb.cells[c] = t
	}
	t.runs++
	list := tr.f.all()
	if len(list) > 0 {
		t.red++
	}
	if tr.hit {
		t.hit++
	}
	t.aAcked += tr.j.aAcked
	t.aLost += tr.j.aLost
	t.bAcked += tr.j.bAcked
	t.bLost += tr.j.bLost
	t.excused += tr.j.excused
	for _, f := range list {
		t.classes[f.class]++
	}
}

// String returns the table: a row for each cell, and sums for each event, state and kind.
func (tb *table) String() string {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join([]string{
		"event", "state", "kind", "runs", "red", "in time", "A acknowledged", "lost", "excused", "B acknowledged", "lost",
		"findings",
	}, "\t"))
	sums := map[string]*tally{}
	row := func(name string, t *tally) {
		var found []string
		for _, class := range slices.Sorted(maps.Keys(t.classes)) {
			found = append(found, fmt.Sprintf("%s %d", class, t.classes[class]))
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\n", name, t.runs, t.red, t.hit,
			t.aAcked, t.aLost, t.excused, t.bAcked, t.bLost, strings.Join(found, ", "))
	}
	list := slices.SortedFunc(maps.Keys(tb.cells), func(x, y cell) int {
		place := func(c cell) int { return slices.IndexFunc(events, func(e event) bool { return e.name == c.event }) }
		return cmp.Or(place(x)-place(y), slices.Index(states, x.state)-slices.Index(states, y.state),
			cmp.Compare(x.kind, y.kind))
	})
	for _, c := range list {
		t := tb.cells[c]
		row(c.event+"\t"+c.state+"\t"+c.kind, t)
		for _, name := range []string{c.event + "\t\t", "\t" + c.state + "\t", "\t\t" + c.kind, "all\t\t"} {
			s := sums[name]
			if s == nil {
				s = &tally{classes: map[string]int{}}
				sums[name] = s
			}
			s.runs, s.red, s.hit = s.runs+t.runs, s.red+t.red, s.hit+t.hit
			s.aAcked, s.aLost, s.excused = s.aAcked+t.aAcked, s.aLost+t.aLost, s.excused+t.excused
			s.bAcked, s.bLost = s.bAcked+t.bAcked, s.bLost+t.bLost
			for class, n := range t.classes {
				s.classes[class] += n
			}
		}
	}
	fmt.Fprintln(w, "sums")
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		row(name, sums[name])
	}
	_ = w.Flush()
	return fmt.Sprintf("%d cells, %v\n%s", len(tb.cells), time.Since(tb.began).Round(time.Second/10), b.String())
}

// An event happens to the folder of a store that process A has open; afterwards process B opens the
// store at the path. Nothing that either of them has acknowledged is lost, A acknowledges nothing
// anymore for a folder that is not at the path, and changes nothing at the path. See doc.go.
//
//	go test ./tests/replaced -run TestReplaced -v                            some of the cells
//	VARVE_LONG=1 go test ./tests/replaced -run TestReplaced -v -timeout 2h   all of them
//	go test ./tests/replaced -run 'TestReplaced/^rm$/^idle$/^library$' -replaced.seed 7 -replaced.runs 1 -v
func TestReplaced(t *testing.T) {
	if _, err := memctl(); err != nil {
		t.Fatal(err)
	}
	all, seed := proofs.Long() || *runsFlag > 0 || *seedFlag > 0, *seedFlag
	if seed == 0 {
		if seed = 1; proofs.Long() {
			seed = 1 + rand.Uint64N(1<<40)
		}
	}
	no := mountable(t)
	tb := &table{cells: map[cell]*tally{}, began: time.Now()}
	t.Cleanup(func() { t.Log(tb) })
	for i := range events {
		e := &events[i]
		t.Run(e.name, func(t *testing.T) {
			if e.name == "bind" && no != "" {
				t.Skipf("VARVE_LONG=1 as root on Linux runs it: %s", no)
			}
			for j, state := range states {
				t.Run(state, func(t *testing.T) {
					for k, kind := range append(slices.Clone(kinds), kindKilled) {
						if kind == kindKilled && state != idle {
							continue
						}
						if !all && !share(i, j, k) {
							continue
						}
						t.Run(kind, func(t *testing.T) {
							t.Parallel()
							runs := *runsFlag
							if runs == 0 {
								runs = 1
								if proofs.Long() {
									runs = max(3, len(e.variants))
								}
							}
							for n := range runs {
								one(t, tb, e, state, kind, seed+uint64(n))
							}
						})
					}
				})
			}
		})
	}
}

// share reports whether a cell is in the daily run, one for each event, or in that of .ci/run, five
// times as many.
func share(event, state, kind int) bool {
	if kind == len(kinds) {
		return false
	}
	if proofs.Everyday() || proofs.Race() {
		return state == event%len(states) && kind == (event+event/len(kinds))%len(kinds)
	}
	return kind == (event+state)%len(kinds)
}

// one does one run of a cell.
func one(t *testing.T, tb *table, e *event, state, kind string, seed uint64) {
	t.Run(fmt.Sprint("seed-", seed), func(t *testing.T) {
		tr, err := newTrial(t, e, state, kind, seed)
		again := fmt.Sprintf("go test ./tests/replaced -run 'TestReplaced/^%s$/^%s$/^%s$' -replaced.seed %d "+
			"-replaced.runs 1 -v", e.name, state, kind, seed)
		if *memctlFlag != "" {
			again += " -replaced.memctl " + *memctlFlag
		}
		if err == nil {
			err = tr.run()
		}
		if err != nil {
			t.Errorf("%v\nagain: %s", err, again)
			return
		}
		tb.add(cell{e.name, state, kind}, tr)
		list := tr.f.all()
		if len(list) == 0 {
			return
		}
		shown := map[string]int{}
		var b strings.Builder
		for _, f := range list {
			if shown[f.class]++; shown[f.class] <= 3 {
				fmt.Fprintf(&b, "\n\t%s: %s", f.class, f.text)
			}
		}
		for class, n := range shown {
			if n > 3 {
				fmt.Fprintf(&b, "\n\t%s: %d in all", class, n)
			}
		}
		t.Errorf("%s (%s), A is %s and %s, %s: %d findings%s\nagain: %s", e.name, tr.variant, kind, state, tr.order,
			len(list), strings.ReplaceAll(b.String(), tr.root, "…"), again)
	})
}
