package fuzz

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/internal/vfs/sim"
	"github.com/varve-db/varve/internal/vfs/wrap"
	"github.com/varve-db/varve/working"
)

// dump returns all that can be seen of a scope, except for times.
func dump(m *working.Memory) (string, error) {
	now, err := m.Snapshot(ctx)
	if err != nil {
		return "", err
	}
	list, err := m.Checkpoints(ctx)
	if err != nil {
		return "", err
	}
	type state struct {
		ID, Description string
		Keys, Entries   int
		Values          map[string]any
		Expire          []string
		Task            string
		Notes           []string
	}
	show := func(s *working.Snapshot) state {
		out := state{ID: s.Info.ID, Description: s.Info.Description, Keys: s.Info.Keys, Entries: s.Info.Notes,
			Values: s.Values}
		for key := range s.TTL {
			out.Expire = append(out.Expire, key)
		}
		slices.Sort(out.Expire)
		if s.Task != nil {
			out.Task = fmt.Sprint(s.Task.Description, s.Task.Status, s.Task.CurrentStep, s.Task.Progress, s.Task.Extra)
		}
		for _, n := range s.Notes {
			out.Notes = append(out.Notes, n.Text)
		}
		return out
	}
	all := []state{show(now)}
	for _, c := range list {
		s, err := m.LoadCheckpoint(ctx, c.ID)
		if err != nil {
			return "", err
		}
		all = append(all, show(s))
	}
	text, err := json.MarshalIndent(all, "", " ")
	return string(text), err
}

// workSteps is a fixed workload of every operation of working memory. Checkpoints
// have the ids that they get by number.
func workSteps() []func(m *working.Memory) error {
	text := func(i, n int) string { return content(fmt.Sprint("#", i+1), n) }
	mark := func(m *working.Memory, i int) string {
		list, _ := m.Checkpoints(ctx)
		if i >= len(list) {
			return ""
		}
		return list[i].ID
	}
	second := func(_ any, err error) error { return err }
	steps := []func(m *working.Memory) error{
		func(m *working.Memory) error { return m.Set(ctx, "a", text(1, 300)) },
		func(m *working.Memory) error {
			return m.SetMany(ctx, map[string]any{"b": 1, "c": nil, "d": []any{1, "x"}})
		},
		func(m *working.Memory) error { return m.Set(ctx, "brief", 1, working.Expires(1000*time.Hour)) },
		func(m *working.Memory) error { return second(m.Increment(ctx, "b", 41)) },
		func(m *working.Memory) error {
			return second(m.SetTask(ctx, working.Task{Description: "d", Status: "begun", TotalSteps: 3,
				StartedAt: time.Unix(1e9, 0)}))
		},
		func(m *working.Memory) error { return second(m.Append(ctx, text(2, 2000))) },
		func(m *working.Memory) error { return second(m.Append(ctx, "second")) },
		func(m *working.Memory) error { return second(m.Checkpoint(ctx, "one")) },
		func(m *working.Memory) error { return second(m.Delete(ctx, "a")) },
		func(m *working.Memory) error { return m.Set(ctx, "b", text(3, 9000)) },
		func(m *working.Memory) error { return second(m.Append(ctx, "third")) },
		func(m *working.Memory) error {
			_, _, err := m.UpdateTask(ctx, working.TaskUpdate{Extra: map[string]any{"more": true}})
			return err
		},
		func(m *working.Memory) error { return second(m.Checkpoint(ctx, "two")) },
		func(m *working.Memory) error { return second(m.Clear(ctx)) },
		func(m *working.Memory) error { return second(m.ClearScratchpad(ctx)) },
		func(m *working.Memory) error { return second(m.Restore(ctx, mark(m, 0))) },
		func(m *working.Memory) error { return second(m.Append(ctx, "after the first restore")) },
		func(m *working.Memory) error { return second(m.Restore(ctx, mark(m, 1))) },
		func(m *working.Memory) error { return second(m.DeleteCheckpoint(ctx, mark(m, 1))) },
		func(m *working.Memory) error { return m.Set(ctx, "e", text(4, 12000)) },
		func(m *working.Memory) error { return second(m.Touch(ctx, "e", working.Expires(2000*time.Hour))) },
		func(m *working.Memory) error { return second(m.CompareAndSet(ctx, "d", []any{1, "x"}, "y")) },
		func(m *working.Memory) error { return second(m.SetIfAbsent(ctx, "f", 1.5)) },
		func(m *working.Memory) error { return second(m.ClearTask(ctx)) },
		func(m *working.Memory) error { return second(m.Restore(ctx, mark(m, 0))) },
		func(m *working.Memory) error { return second(m.Drop(ctx)) },
		func(m *working.Memory) error { return m.Set(ctx, "a", "anew") },
		func(m *working.Memory) error { return second(m.Checkpoint(ctx, "of the new one")) },
		func(m *working.Memory) error { return m.Set(ctx, "a", text(5, 15000)) },
		func(m *working.Memory) error { return second(m.Restore(ctx, mark(m, 0))) },
	}
	return steps
}

var otherScopes = []working.Scope{{Session: "x"}, {Session: "y"}, {Session: "z"}}

var workScope = working.Scope{Project: "p", Session: "s:1"}

func workOptions() *working.Options {
	return &working.Options{Checkpoints: 4, MaxNotes: 3, Random: rand.NewChaCha8([32]byte{9})}
}

// expectedWork returns the state of a home in memory after each step.
func expectedWork(t *testing.T) []string {
	m, err := working.Open(ctx, working.NewLocal(nil), workScope, workOptions())
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for i, step := range append([]func(*working.Memory) error{func(*working.Memory) error { return nil }},
		workSteps()...) {
		if err := step(m); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		text, err := dump(m)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text)
	}
	return all
}

// lag lets files of a few KiB lag, and does a round as in the background after each commit.
func lag(o *varve.Options) {
	storetest.Of(o).System.LagBytes, storetest.Of(o).System.Rounds = 1, 1
	storetest.Of(o).System.SpillBytes, storetest.Of(o).System.BacklogBytes = 40<<10, 100<<10
}

func noLag(*varve.Options) {}

// lags reports whether a background round has let a file lag.
func lags(o *varve.Options, st *varve.Store) bool {
	s := st.Admin().Stats()
	return storetest.Of(o).System.Rounds == 1 && s.Flushed < s.Durable
}

// workScript does these steps in a store, among memories, flushes and closes. at is how many are done;
// lagged, after how many of them a file did lag.
func workScript(m *machine, change func(*varve.Options), at *int, bad func(format string, args ...any)) (lagged int) {
	_, o := m.process("script")
	change(o)
	var st *varve.Store
	var w *working.Memory
	random := workOptions()
	open := func() bool {
		var err error
		if st, err = varve.Open(ctx, dir, o); err == nil {
			w, err = st.Working().Open(ctx, workScope, random)
		}
		if err != nil {
			bad("open: %v", err)
		}
		return err == nil
	}
	if !open() {
		return lagged
	}
	ok := func(err error) {
		if err != nil {
			bad("step %d: %v", *at, err)
		}
	}
	for i, step := range workSteps() {
		ok(step(w))
		*at++
		if lags(o, st) {
			lagged++
		}
		switch {
		case i%9 == 8:
			ok(st.Close())
			if !open() {
				return lagged
			}
		case i%4 == 1:
			for _, other := range otherScopes { // several files in one round
				o, err := st.Working().Open(ctx, other, nil)
				ok(err)
				ok(o.Set(ctx, "k", strings.Repeat("v", 100*i)))
			}
			ok(st.Flush(ctx))
		case i%4 == 3:
			_, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint("m", i%3), Content: content("#1", 9000)})
			ok(err)
		}
	}
	ok(st.Close())
	return lagged
}

// lookWork opens the store alone and checks that it has one of some states, through a flush and another
// open.
func lookWork(o *varve.Options, bad func(format string, args ...any), want ...string) {
	for _, when := range []string{"opened", "opened again"} {
		st, err := varve.Open(ctx, dir, o)
		if err != nil {
			bad("the store does not open: %v", err)
			return
		}
		if r := st.Admin().OpenReport(); r.Damage != nil || r.Rebuilt != nil || len(r.Problems) > 0 {
			bad("open: damage %v, rebuilt %v, problems %v", r.Damage, r.Rebuilt, r.Problems)
		}
		for _, what := range []string{when, when + " and flushed"} {
			w, err := st.Working().Open(ctx, workScope, workOptions())
			if err != nil {
				bad("%s: %v", what, err)
				break
			}
			is, err := dump(w)
			if i := slices.Index(want, is); err != nil || i < 0 {
				bad("%s: neither before nor after (%v):\n%s\nwanted one of %s", what, err, is, strings.Join(want, "\nor "))
				break
			} else {
				want = want[i : i+1]
			}
			for _, other := range otherScopes {
				if o, err := st.Working().Open(ctx, other, nil); err != nil {
					bad("%s: %v", what, err)
				} else if err := o.Set(ctx, "looked", when); err != nil {
					bad("%s: %v", what, err)
				}
			}
			if err := st.Flush(ctx); err != nil {
				bad("flush: %v", err)
			}
		}
		for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
			if err != nil || f.Severity != varve.SeverityInfo {
				bad("verify: %s %v", f.String(), err)
			}
		}
		if err := st.Close(); err != nil {
			bad("close: %v", err)
		}
	}
}

// TestWorkingCut cuts the power before each operation of workScript that changes
// the disk, with each pattern of loss, and kills the process there: the scope is
// as it was before the step or after it, checkpoints and all. FAILURES 47 and 50.
func TestWorkingCut(t *testing.T) { cutWork(t, noLag) }

// TestWorkingCutLagging is TestWorkingCut while files lag behind the log.
func TestWorkingCutLagging(t *testing.T) { cutWork(t, lag) }

func cutWork(t *testing.T, change func(*varve.Options)) {
	proofs.OneGoroutine(t)
	t.Parallel()
	step := proofs.Every(29)
	want := expectedWork(t)
	at, changes, cuts := 0, 0, 0
	m := newMachine()
	m.hook = func(_ *crash.Process, op *wrap.Op) {
		if !op.Kind.Changes() || op.Kind == wrap.Store || op.Kind == wrap.CompareAndSwap {
			return
		}
		if changes++; changes%step != 0 || *cutFlag != 0 && m.ops != *cutFlag {
			return
		}
		for i, p := range patternsFor(t) {
			if *stride == 0 && *cutFlag == 0 && (changes+i)%3 != 0 {
				continue
			}
			f := m.future(p, uint64(i+1))
			cuts++
			_, o := f.process("look")
			change(o)
			var wrong []string
			lookWork(o, func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) },
				want[at:min(at+2, len(want))]...)
			if len(wrong) > 0 {
				t.Fatalf("cut before operation %d (%s %s), %s:\n%s\n\tgo test ./fuzz -run %s -cut %d -pattern %s", m.ops, op.Kind,
					op.Path, p, joinWrong(wrong), t.Name(), m.ops, p)
			}
		}
	}
	lagged := workScript(m, change, &at, func(format string, args ...any) { t.Errorf(format, args...) })
	if at != len(want)-1 {
		t.Errorf("%d steps done, not %d", at, len(want)-1)
	}
	_, o := m.process("end")
	if change(o); storetest.Of(o).System.Rounds > 0 && lagged < 5 {
		t.Errorf("a file lagged after %d steps only", lagged)
	}
	t.Logf("%d cuts before %d operations that change the disk; a file lagged after %d steps", cuts, changes, lagged)
}

// TestWorkingKilled kills the process at each of these operations, which may be done in part; another
// process checks the state in the same boot, and one after a loss of power.
func TestWorkingKilled(t *testing.T) { killWork(t, noLag) }

// TestWorkingKilledLagging is TestWorkingKilled while files lag behind the log.
func TestWorkingKilledLagging(t *testing.T) { killWork(t, lag) }

func killWork(t *testing.T, change func(*varve.Options)) {
	proofs.OneGoroutine(t)
	t.Parallel()
	want := expectedWork(t)
	count, changing := newMachine(), []int(nil)
	count.hook = func(_ *crash.Process, op *wrap.Op) {
		if op.Kind.Changes() {
			changing = append(changing, count.ops)
		}
	}
	at := 0
	workScript(count, change, &at, func(format string, args ...any) { t.Fatalf(format, args...) })
	step := max(1, *stride)
	if *stride == 0 {
		if step = 7; !proofs.Long() {
			step = proofs.Every(127)
		}
	}
	kills := 0
	for i := 0; i < len(changing); i += step {
		if *cutFlag != 0 && changing[i] != *cutFlag {
			continue
		}
		kills++
		var wrong []string
		bad := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
		m, at := newMachine(), 0
		m.killAt, m.tear = changing[i], i%2 == 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			workScript(m, change, &at, bad)
		}()
		<-done
		_, o := m.process("look")
		change(o)
		lookWork(o, bad, want[at:min(at+2, len(want))]...)
		m = m.future(crash.LoseAll, 1)
		_, o = m.process("look")
		change(o)
		lookWork(o, bad, want[at:min(at+2, len(want))]...)
		if len(wrong) > 0 {
			t.Fatalf("killed before operation %d:\n%s\n\tgo test ./fuzz -run %s -stride 1 -cut %d", changing[i],
				joinWrong(wrong), t.Name(), changing[i])
		}
	}
	t.Logf("%d kills", kills)
}

// worker is a world of working memory: several processes use a few scopes.
type worker struct {
	s     *sim.Sim
	lags  bool // files may lag
	rng   *rand.Rand
	tick  int
	acts  int
	wrong []string
	did   map[string]int

	token             int
	added, tried      int // the counter's acknowledged increments, and the maximum
	notes             map[string]bool
	states            []*stated         // what was made the state of the scope
	marks             map[string]string // checkpoints that were acknowledged, with their content once it was seen
	dropped, refilled int               // when the last drop ended, and the last write to it began
	filling           int               // how many write to it
	forgotten         map[string]bool   // checkpoints whose deletion was begun
}

// stated is a write that leaves the scope in a state.
type stated struct {
	token      string
	start, end int // end: 0, not known
}

func newWorker(seed uint64) *worker {
	return &worker{s: sim.New(seed), rng: rand.New(rand.NewPCG(seed, 78)), did: map[string]int{}, notes: map[string]bool{},
		marks: map[string]string{}, forgotten: map[string]bool{}, states: []*stated{{token: "", start: 0, end: 1}}, tick: 1}
}

func (w *worker) bad(format string, args ...any) {
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

func (w *worker) now() int { w.tick++; return w.tick }

var (
	shared   = working.Scope{Session: "shared"}   // of values that are set together, checkpoints and restores
	counting = working.Scope{Session: "counting"} // a counter and a scratchpad
	passing  = working.Scope{Session: "passing"}  // that is dropped now and then
)

func (w *worker) options(p *sim.Proc) *varve.Options {
	o := options(p.FS, p.Rand(), p.Now, p.Wait)
	if w.lags {
		lag(o)
	}
	return o
}

// work runs one process.
func (w *worker) work(p *sim.Proc) {
	rng := rand.New(rand.NewPCG(w.rng.Uint64(), 4))
	o := w.options(p)
	for w.acts > 0 {
		st, err := varve.Open(ctx, dir, o)
		if err != nil {
			w.bad("open: %v", err)
			return
		}
		h := st.Working().Home()
		wo := &working.Options{Checkpoints: working.Unlimited, MaxNotes: working.Unlimited, Random: p.Rand()}
		for n := 5 + rng.IntN(40); n > 0 && w.acts > 0; n-- {
			w.acts--
			w.step(p.Name, st, h, o, wo, rng)
		}
		if err := st.Close(); err != nil {
			w.bad("%s: close: %v", p.Name, err)
			return
		}
	}
}

func (w *worker) step(who string, st *varve.Store, h working.Home, so *varve.Options, o *working.Options,
	rng *rand.Rand) {
	m, err := working.Open(ctx, h, shared, o)
	if err != nil {
		w.bad("%s: open: %v", who, err)
		return
	}
	counted, err := working.Open(ctx, h, counting, o)
	if err != nil {
		w.bad("%s: open: %v", who, err)
		return
	}
	what := ""
	switch n := rng.IntN(100); {
	case n < 15:
		what = "append"
		w.token++
		text := fmt.Sprint("n", w.token)
		w.notes[text] = false
		if _, err = counted.Append(ctx, text); err == nil {
			w.notes[text] = true
		}
	case n < 30:
		what = "increment"
		w.tried++
		if _, err = counted.Increment(ctx, "n", 1); err == nil {
			w.added++
		}
	case n < 45:
		what = "set"
		w.token++
		err = w.set(m, fmt.Sprint("s", w.token), rng.IntN(4000))
	case n < 52:
		what = "checkpoint"
		var c working.CheckpointInfo
		if c, err = m.Checkpoint(ctx, ""); err == nil {
			w.marks[c.ID] = ""
		}
	case n < 60:
		what = "restore"
		err = w.restore(m, rng)
	case n < 62:
		what = "discard"
		var list []working.CheckpointInfo
		if list, err = m.Checkpoints(ctx); err == nil && len(list) > 3 {
			id := list[rng.IntN(len(list))].ID
			w.forgotten[id] = true
			_, err = m.DeleteCheckpoint(ctx, id)
		}
	case n < 80:
		what = "look"
		w.look(who, m)
	case n < 84:
		what = "pass"
		err = w.pass(h, o, rng)
	case n < 92:
		what = "put"
		_, err = st.Put(ctx,
			varve.Memory{ID: groupMemory(rng.IntN(groupMemories)), Content: content("#1", 20+rng.IntN(9000))})
	case n < 94:
		what = "release"
		err = h.Release(ctx, shared)
	case n < 98:
		what = "flush"
		err = st.Flush(ctx)
	default:
		what = "compact"
		err = st.Admin().Compact(ctx)
	}
	if w.did[what]++; lags(so, st) {
		w.did["lagged"]++
	}
	if err != nil && !isRefusal(err) {
		w.bad("%s: %s: %v", who, what, err)
	}
}

// set gives three values one token, in one operation.
func (w *worker) set(m *working.Memory, token string, size int) error {
	s := &stated{token: token, start: w.now()}
	w.states = append(w.states, s)
	err := m.SetMany(ctx, map[string]any{"a": token, "b": token, "c": token + ":" + filling[:size]})
	if err == nil {
		s.end = w.now()
	}
	return err
}

// restore restores an existing checkpoint whose content it has read.
func (w *worker) restore(m *working.Memory, rng *rand.Rand) error {
	list, err := m.Checkpoints(ctx)
	if err != nil || len(list) == 0 {
		return err
	}
	id := list[rng.IntN(len(list))].ID
	held, err := m.LoadCheckpoint(ctx, id)
	if err != nil {
		return err
	}
	token := w.tokenOf("checkpoint "+id, held)
	w.remember(id, held)
	s := &stated{token: token, start: w.now()}
	w.states = append(w.states, s)
	c, err := m.Restore(ctx, id)
	if err == nil {
		s.end = w.now()
		w.marks[c.ID] = ""
	}
	return err
}

func (w *worker) remember(id string, s *working.Snapshot) {
	text, _ := json.Marshal(s.Values)
	if was := w.marks[id]; was == "" {
		w.marks[id] = string(text)
	} else if was != string(text) {
		w.bad("checkpoint %s holds %.200s, and held %.200s", id, text, was)
	}
}

// tokenOf returns the token that all three have.
func (w *worker) tokenOf(what string, s *working.Snapshot) string {
	a, _ := s.Values["a"].(string)
	b, _ := s.Values["b"].(string)
	c, _ := s.Values["c"].(string)
	if c, _, _ = strings.Cut(c, ":"); a != b || b != c {
		w.bad("%s: %q, %q and %q were set together", what, a, b, c)
	}
	return a
}

// look checks that the state is a possible one.
func (w *worker) look(who string, m *working.Memory) {
	start := w.now()
	s, err := m.Snapshot(ctx)
	if err != nil {
		w.bad("%s: snapshot: %v", who, err)
		return
	}
	w.may(who, w.tokenOf(who, s), start)
}

// may reports whether the write that left this state was begun by now, and no other one was begun after
// it had ended and had ended before the look.
func (w *worker) may(who, token string, start int) {
	for _, s := range w.states {
		if s.token != token {
			continue
		}
		over := slices.ContainsFunc(w.states, func(o *stated) bool {
			return s.end != 0 && o.start > s.end && o.end != 0 && o.end < start
		})
		if !over {
			return
		}
	}
	w.bad("%s: the state is %q, which was replaced", who, token)
}

// pass fills and drops a scope.
func (w *worker) pass(h working.Home, o *working.Options, rng *rand.Rand) error {
	m, err := working.Open(ctx, h, passing, o)
	if err != nil {
		return err
	}
	if rng.IntN(2) == 0 {
		w.refilled = w.now()
		w.filling++
		defer func() { w.filling-- }() // also if the process is killed: then it writes nothing later
		return m.Set(ctx, "k", w.token)
	}
	begun, alone := w.now(), w.filling == 0
	_, err = m.Drop(ctx)
	if err == nil && alone && w.refilled < begun {
		w.dropped = begun
	}
	return err
}

// final opens the store alone and compares everything.
func (w *worker) final(fsys vfs.FS, o *varve.Options) {
	st, err := varve.Open(ctx, dir, o)
	if err != nil {
		w.bad("the store does not open: %v", err)
		return
	}
	if r := st.Admin().OpenReport(); r.Damage != nil || r.Rebuilt != nil || len(r.Problems) > 0 {
		w.bad("open: damage %v, rebuilt %v, problems %v", r.Damage, r.Rebuilt, r.Problems)
	}
	w.compare("opened", st)
	if err := st.Flush(ctx); err != nil {
		w.bad("flush: %v", err)
	}
	st.Working().Home().Release(ctx, shared)
	w.compare("flushed", st)
	for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
		if err != nil || f.Severity != varve.SeverityInfo {
			w.bad("verify: %s %v", f.String(), err)
		}
	}
	if err := st.Close(); err != nil {
		w.bad("close: %v", err)
	}
}

func (w *worker) compare(when string, st *varve.Store) {
	m, err := st.Working().Open(ctx, shared, &working.Options{Checkpoints: working.Unlimited, MaxNotes: working.Unlimited})
	if err != nil {
		w.bad("%s: %v", when, err)
		return
	}
	w.look(when, m)
	list, err := m.Checkpoints(ctx)
	if err != nil {
		w.bad("%s: checkpoints: %v", when, err)
	}
	there := map[string]bool{}
	for _, c := range list {
		there[c.ID] = true
		s, err := m.LoadCheckpoint(ctx, c.ID)
		if err != nil {
			w.bad("%s: checkpoint %s: %v", when, c.ID, err)
			continue
		}
		w.tokenOf(when+": checkpoint "+c.ID, s)
		w.remember(c.ID, s)
	}
	for id := range w.marks {
		if !there[id] && !w.forgotten[id] {
			w.bad("%s: checkpoint %s is gone", when, id)
		}
	}
	w.count(when, st)
	if p, err := st.Working().Open(ctx, passing, nil); err != nil {
		w.bad("%s: %v", when, err)
	} else if all, err := p.All(ctx); err != nil || len(all) > 0 && w.dropped > w.refilled {
		w.bad("%s: what was dropped is there: %v, %v", when, all, err)
	}
}

// count checks that every acknowledged increment and entry is there once.
func (w *worker) count(when string, st *varve.Store) {
	m, err := st.Working().Open(ctx, counting, nil)
	if err != nil {
		w.bad("%s: %v", when, err)
		return
	}
	v, err := m.GetOr(ctx, "n", 0.0)
	n, _ := v.(float64)
	if err != nil || int(n) < w.added || int(n) > w.tried {
		w.bad("%s: the counter is %v (%v), %d increments were acknowledged, %d tried", when, v, err, w.added, w.tried)
	}
	notes, err := m.Notes(ctx, -1)
	if err != nil {
		w.bad("%s: scratchpad: %v", when, err)
	}
	seen := map[string]bool{}
	for i, note := range notes {
		if _, tried := w.notes[note.Text]; !tried || seen[note.Text] || i > 0 && note.Seq <= notes[i-1].Seq {
			w.bad("%s: entry %d, %d, is %q", when, i, note.Seq, note.Text)
		}
		seen[note.Text] = true
	}
	for text, acked := range w.notes {
		if acked && !seen[text] {
			w.bad("%s: entry %q is gone", when, text)
		}
		w.notes[text] = seen[text] // from now on it is there, or is not
		if !seen[text] {
			delete(w.notes, text)
		}
	}
	w.added, w.tried = int(n), int(n)
}

func (w *worker) run(processes, boots int) error {
	w.s.OnKill = func(*sim.Proc) { w.s.Process("again", w.work) }
	for boot := range boots {
		w.acts = 20 + w.rng.IntN(120)
		w.s.Odds = sim.Odds{Switch: 2 + w.rng.IntN(40), Stop: 3000, Kill: []int{0, 4000, 1500}[w.rng.IntN(3)],
			Cut: []int{0, 1000, 5000}[w.rng.IntN(3)]}
		for i := range processes {
			w.s.Process(fmt.Sprint("p", i), w.work)
		}
		if err := w.s.Run(); err != nil {
			return fmt.Errorf("boot %d: %w", boot, err)
		}
		if !w.s.WasCut() {
			w.s.Cut(w.s.Patterns[w.rng.IntN(len(w.s.Patterns))])
		}
		w.s.Odds = sim.Odds{Cut: []int{0, 1500}[w.rng.IntN(2)]} // the recovery as well
		for range 5 {
			w.s.Process("look", func(p *sim.Proc) { w.final(p.FS, w.options(p)) })
			if err := w.s.Run(); err != nil {
				return fmt.Errorf("recovery of boot %d: %w", boot, err)
			}
			if !w.s.WasCut() {
				break
			}
			w.s.Odds = sim.Odds{}
		}
		if len(w.wrong) > 0 {
			return errors.New(joinWrong(w.wrong))
		}
	}
	return nil
}

func simulateWork(t *testing.T, processes, seeds int, lags bool) {
	simulateSeeds(t, seeds, func(seed uint64) (*sim.Sim, map[string]int, func() error) {
		w := newWorker(seed)
		w.lags = lags
		return w.s, w.did, func() error { return w.run(processes, 1+int(seed%3)) }
	})
}

func TestSimWorking(t *testing.T) { simulateWork(t, 3, 40, false) }

func TestSimWorkingAlone(t *testing.T) { simulateWork(t, 1, 20, false) }

func TestSimWorkingLagging(t *testing.T) { simulateWork(t, 3, 30, true) }

func TestSimWorkingAloneLagging(t *testing.T) { simulateWork(t, 1, 20, true) }
