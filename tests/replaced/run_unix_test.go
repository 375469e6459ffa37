//go:build unix

package replaced

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/scratch"
)

// The states of A when the event happens, and the kinds of A.
const (
	idle     = "idle"
	writing  = "writing"
	watching = "watching"
	closing  = "closing"
	flushing = "flushing"

	kindMCP     = "mcp"
	kindLibrary = "library"
	kindWatch   = "watch"
	kindKilled  = "killed" // A was killed before the event: findings are not caused by A
)

var (
	states = []string{idle, writing, watching, closing, flushing}
	kinds  = []string{kindMCP, kindLibrary, kindWatch}
)

// trial is one run of a cell.
type trial struct {
	*world
	f     findings
	e     *event
	state string
	kind  string
	rng   *rand.Rand

	a, b, filler record
	began, ended int64  // of the event
	ready        int64  // when B was open
	old          string // where the folder that A opened is; "": nowhere else
	hit          bool   // the event began before the flush or the close that it was to hit had ended

	refused bool // B was refused, with an error that names what the event has damaged

	lib    *library
	server *mcp
	watch  *watchCommand
	second party

	files string // of an idle library process: what it files before the event
	order string
	j     judgement
}

// party is process B.
type party interface {
	put(n int) error
	close() error
	kill()
}

// backlog is the number of memories that are only in the log when a flush or a close begins.
const backlog = 600

// orders are the orders in which the processes end.
var orders = []string{"A, then B", "B, then A", "B killed, then A", "A killed, then B"}

// newTrial creates the folders of a run. The seed decides everything that the run chooses.
func newTrial(t testing.TB, e *event, state, kind string, seed uint64) (*trial, error) {
	h := fnv.New64a()
	fmt.Fprint(h, e.name, state, kind)
	tr := &trial{e: e, state: state, kind: kind, rng: rand.New(rand.NewPCG(seed, h.Sum64()))}
	tr.order = orders[tr.rng.IntN(len(orders))]
	root := t.TempDir()
	if tr.rng.IntN(3) == 0 { // where a sync takes time
		root = scratch.Disk(t)
	}
	w, err := newWorld(t, root, e.variants[seed%uint64(len(e.variants))], e)
	tr.world = w
	return tr, err
}

// spared reports whether the event leaves the log unchanged.
func (tr *trial) spared() bool {
	return tr.e.name == "wipe" && (tr.variant == "locks" || tr.variant == "rest")
}

// run does one run of a cell. An error is a failure of the test itself.
func (tr *trial) run() error {
	if err := tr.begin(); err != nil {
		return fmt.Errorf("before the event: %w", err)
	}
	var before snapshot
	var err error
	if tr.next != "" { // what comes to the path is known
		if before, err = snap(tr.next); err != nil {
			return err
		}
	}
	tr.hit = tr.busy()
	tr.began = now()
	tr.old, err = tr.e.do(tr.world)
	tr.ended = now()
	if err != nil {
		if !tr.e.absent && tr.e.name != "clean" {
			return fmt.Errorf("the event: %w", err)
		}
		tr.f.add("created", "A creates files again while they are removed: %v", err)
	}
	if before == nil && (tr.e.other || tr.e.absent) {
		if before, err = snap(tr.path); err != nil {
			return err
		}
		if tr.e.absent && before != nil {
			tr.f.add("created", "after rm -rf the folder exists")
		}
	}
	if err := tr.alone(before); err != nil {
		return fmt.Errorf("after the event: %w", err)
	}
	if err := tr.beside(); err != nil {
		return fmt.Errorf("B: %w", err)
	}
	return tr.end()
}

// begin opens the store in A and brings A into its state.
func (tr *trial) begin() (err error) {
	switch tr.kind {
	case kindLibrary, kindKilled:
		err = tr.beginLibrary()
	case kindMCP:
		err = tr.beginMCP()
	case kindWatch:
		err = tr.beginWatch()
	}
	if err == nil && tr.kind == kindKilled {
		tr.lib.kill()
	}
	return err
}

// filed returns the number of documents in files of A's store.
func (tr *trial) filed(dir string) int {
	d, err := os.Open(filepath.Join(dir, "memories"))
	if err != nil {
		return 0
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	return len(names)
}

// underWay blocks until a flush has begun to write documents, or over is closed. It polls without a
// pause: the event must come during the flush.
func (tr *trial) underWay(over <-chan struct{}, from int) {
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if tr.filed(tr.path) > from+2 {
			return
		}
		select {
		case <-over:
			return
		default:
		}
	}
}

func (tr *trial) beginLibrary() (err error) {
	if tr.lib, err = startLibrary(tr.t, tr.path, &tr.a); err != nil {
		return err
	}
	large := tr.state == closing || tr.state == flushing
	// An idle A has written all of its memories to files, or none of them, or is about to.
	tr.files = []string{"all", "none", "soon"}[tr.rng.IntN(3)]
	c := command{Do: "open", Prefix: "a", MustExist: true}
	c.Background = !large && (tr.state != idle || tr.files != "none")
	c.Watch = !large && (tr.state == watching || tr.rng.IntN(2) == 0)
	if a, err := tr.lib.do(c); err != nil || a.Err != "" {
		return fmt.Errorf("A: %w %s", err, a.Err)
	}
	if _, err = tr.lib.do(command{Do: "put", N: 5}); err != nil {
		return err
	}
	from := tr.filed(tr.path)
	switch tr.state {
	case idle:
		if tr.files == "all" {
			_, err = tr.lib.do(command{Do: "op", Op: "flush"})
		}
	case writing:
		if err = tr.lib.tell(command{Do: "write"}); err == nil {
			err = tr.acknowledged(&tr.a, 20)
		}
	case watching:
		if _, err = tr.lib.do(command{Do: "watch"}); err == nil {
			_, err = tr.lib.do(command{Do: "put", N: 2})
		}
		for range 2 {
			select {
			case <-tr.lib.changes:
			case <-time.After(patience):
				return errors.New("A: the watch shows nothing")
			}
		}
	case closing, flushing:
		if _, err = tr.lib.do(command{Do: "bulk", N: backlog}); err != nil {
			return err
		}
		c := command{Do: "close"}
		if tr.state == flushing {
			c = command{Do: "op", Op: "flush"}
		}
		if err = tr.lib.tell(c); err == nil {
			_, err = tr.lib.await(tr.state)
		}
		over := make(chan struct{})
		stop := time.AfterFunc(patience, func() { close(over) })
		tr.underWay(over, from)
		stop.Stop()
	}
	return err
}

// busy reports whether the flush or the close of A during which the event comes has not ended.
func (tr *trial) busy() bool {
	switch {
	case tr.state == closing && tr.kind == kindLibrary:
		return len(tr.lib.ends("close")) == 0
	case tr.state == flushing && tr.kind == kindLibrary:
		return len(tr.lib.ends("op")) == 0
	case tr.state == closing:
		return tr.process().alive()
	case tr.state == flushing:
		return tr.filed(tr.path) < backlog
	}
	return false
}

// acknowledged blocks until a record has n acknowledged memories.
func (tr *trial) acknowledged(r *record, n int) error {
	if !until(patience, func() bool { return r.acknowledged() >= n }) {
		return fmt.Errorf("%d writes are not acknowledged after %v: %+v", n, patience, r.all())
	}
	return nil
}

func (tr *trial) beginMCP() (err error) {
	if tr.server, err = startMCP(tr.t, tr.path, "a", &tr.a); err != nil {
		return err
	}
	m := tr.server
	for range 5 {
		if m.create(1) {
			return fmt.Errorf("A: %+v", tr.a.all())
		}
	}
	from := tr.filed(tr.path)
	switch tr.state {
	case writing:
		m.write()
		err = tr.acknowledged(&tr.a, 20)
	case watching:
		if _, err = m.request("resources/subscribe", `{"uri":"memory://knowledge-graph"}`); err != nil {
			return err
		}
		m.create(1)
		select {
		case <-m.updates:
		case <-time.After(patience):
			return errors.New("A: no notification of a change")
		}
	case closing, flushing:
		for n := 0; n < backlog; n += bulkSize {
			m.create(bulkSize)
		}
		if tr.state == closing {
			_ = m.in.Close()
		}
		tr.underWay(m.ended, from)
	}
	return err
}

func (tr *trial) beginWatch() (err error) {
	if tr.watch, err = startWatch(tr.t, tr.path); err != nil {
		return err
	}
	shows := func(id string) error {
		if !until(patience, func() bool { return tr.watch.has(id) || !tr.watch.alive() }) || !tr.watch.has(id) {
			return fmt.Errorf("A: memctl watch does not show %s: %s", id, tr.watch.errors())
		}
		return nil
	}
	if err := shows("base-9"); err != nil {
		return err
	}
	from := tr.filed(tr.path)
	switch tr.state {
	case idle, watching:
		b := &commands{t: tr, rec: &tr.filler, prefix: "f"}
		if err = b.put(2); err == nil && tr.state == watching {
			err = shows("f-2")
		}
	case writing: // A adopts what is saved by hand
		for i := range 3 {
			id := fmt.Sprint("hand-", i)
			w := write{Op: "adopt", IDs: []string{id}, Rev: 1, Begin: now()}
			if err := handSaved(tr.path, id, text(id, 1)); err != nil {
				return err
			}
			if err := shows(id); err != nil {
				return err
			}
			w.End = now()
			tr.a.add(w)
		}
	case closing, flushing: // of what another process left in the log
		fill, err := startLibrary(tr.t, tr.path, &tr.filler)
		if err == nil {
			_, err = fill.do(command{Do: "open", Prefix: "f", MustExist: true})
		}
		if err == nil {
			_, err = fill.do(command{Do: "bulk", N: backlog})
		}
		if err != nil {
			return err
		}
		fill.kill()
		if tr.state == closing {
			_ = tr.watch.cmd.Process.Signal(syscall.SIGTERM)
		}
		tr.underWay(tr.watch.ended, from)
	}
	return err
}

// alone checks what A does while no other process uses the store at the path.
func (tr *trial) alone(before snapshot) (err error) {
	switch tr.kind {
	case kindLibrary:
		return tr.aloneLibrary(before)
	case kindMCP:
		err = tr.aloneMCP(&before)
	case kindWatch:
		err = tr.aloneWatch(&before)
	default:
		return nil
	}
	if err != nil {
		return err
	}
	// A host may write to the new store only after it has opened it, which it reports.
	if (tr.e.other || tr.e.absent) && !tr.told() {
		return tr.untouched(before, "A, which has not said that it serves another store,")
	}
	return nil
}

// told reports whether a host has printed on stderr that it serves another store now, or the same one,
// opened again, whose log was replaced.
func (tr *trial) told() bool {
	var p *process
	switch {
	case tr.server != nil:
		p = tr.server.process
	case tr.watch != nil:
		p = tr.watch.process
	default:
		return false
	}
	text := p.stderr.String()
	return strings.Contains(text, "another store") || strings.Contains(text, "the store that is in its place") ||
		strings.Contains(text, "opened again")
}

// untouched compares the folder at the path with an earlier snapshot.
func (tr *trial) untouched(before snapshot, who string, but ...func(name string) bool) error {
	after, err := snap(tr.path)
	if err != nil {
		return err
	}
	for _, may := range but {
		drop := func(name string, _ []string) bool { return may(name) }
		maps.DeleteFunc(before, drop)
		maps.DeleteFunc(after, drop)
	}
	if list := changes(before, after); len(list) > 0 {
		class := "touched"
		if before == nil {
			class = "created"
		}
		tr.f.add(class, "%s changed the folder that is at the path now:\n\t\t%s", who, shortly(list, 10))
	}
	return nil
}

// died records that A has ended without being told to.
func (tr *trial) died(p *process) bool {
	if p.alive() || p.gone.Load() {
		return false
	}
	tr.f.add("died", "A has ended: %s", p.death())
	return true
}

func (tr *trial) aloneLibrary(before snapshot) error {
	l := tr.lib
	same := !tr.e.other && !tr.e.absent // the folder is the one that A has opened, without its log
	closed := false
	switch tr.state {
	case idle:
		if tr.spared() {
			_, err := l.do(command{Do: "put", N: 3})
			return err
		}
		if same {
			if tr.files == "soon" { // it may be in the middle of that
				if _, err := l.do(command{Do: "op", Op: "flush"}); err != nil {
					return err
				}
			}
			var err error
			if before, err = snap(tr.path); err != nil {
				return err
			}
		}
		names := operationNames()
		tr.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		if tr.rng.IntN(3) == 0 { // Close is all that A does
			names, closed = nil, true
		}
		for _, op := range names {
			if _, err := l.do(command{Do: "op", Op: op}); err != nil {
				if tr.died(l.process) {
					return nil
				}
				return fmt.Errorf("%s: %w", op, err)
			}
		}
	case writing:
		if _, err := l.do(command{Do: "mark", N: 3}); err != nil {
			if tr.died(l.process) {
				return nil
			}
			return err
		}
	case watching:
		if tr.spared() {
			break
		}
		if tr.e.other {
			if err := tr.editedByHand(&before); err != nil {
				return err
			}
		}
		select {
		case a := <-l.watchEnd:
			if !a.Replaced {
				tr.f.add("error", "the watch of A ended with another error than ErrReplaced: %s", a.Err)
			}
		case <-l.ended:
			tr.died(l.process)
			return nil
		case <-time.After(watchPatience):
			tr.f.add("silent", "the watch of A has not ended %v after the event", watchPatience)
		}
	case closing:
		a, err := l.await("close")
		if err == nil {
			err = l.wait()
		}
		if err != nil {
			tr.f.add("hung", "Close of A: %v", err)
		}
		if a.Err != "" && !a.Replaced {
			tr.f.add("error", "Close of A returned another error than ErrReplaced: %s", a.Err)
		}
		if tr.e.other || tr.e.absent {
			return tr.untouched(before, "Close of A")
		}
		return nil
	case flushing:
		if _, err := l.await("op"); err != nil {
			if tr.died(l.process) {
				return nil
			}
			tr.f.add("hung", "Flush of A: %v", err)
		}
	}
	if !closed && !tr.spared() && tr.state != idle {
		// The writers have ended after three errors; one more call of each kind.
		for _, op := range []string{"put", "update", "flush"} {
			if _, err := l.do(command{Do: "op", Op: op}); err != nil {
				if tr.died(l.process) {
					return nil
				}
				return fmt.Errorf("%s: %w", op, err)
			}
		}
		if same { // from here on A knows
			var err error
			if before, err = snap(tr.path); err != nil {
				return err
			}
			for _, op := range []string{"flush", "put", "compact"} {
				if _, err := l.do(command{Do: "op", Op: op}); err != nil {
					return fmt.Errorf("%s: %w", op, err)
				}
			}
		}
	}
	// What was filed and then removed by the event cannot be read from anywhere.
	if !closed && !tr.gone {
		a, err := l.do(command{Do: "get"})
		if err != nil {
			return err
		}
		if len(a.Unread) > 0 {
			tr.f.add("unread",
				"%d acknowledged memories cannot be read through the handle of A, which is open:\n\t\t%s",
				len(a.Unread), shortly(a.Unread, 3))
		}
	}
	if closed || tr.rng.IntN(4) == 0 {
		if err := tr.closeLibrary(); err != nil {
			return err
		}
	}
	if tr.spared() {
		return nil
	}
	if same {
		return tr.untouched(before, "A", byRescue)
	}
	return tr.untouched(before, "A")
}

// byRescue reports whether a process may change a file of a folder that lost only its log: it puts its
// documents into files, through tmp/, as long as no other process has the store open. Its page is
// mapped.
func byRescue(name string) bool {
	top, _, _ := strings.Cut(name, "/")
	return name == "wal/shared" || slices.Contains([]string{".", "memories", "tmp"}, top)
}

// editedByHand saves a document in the folder that is now at the path: A must not adopt the edit.
func (tr *trial) editedByHand(before *snapshot) error {
	if err := handSaved(tr.path, "hand-new", text("hand-new", 1)); err != nil {
		return err
	}
	var err error
	*before, err = snap(tr.path)
	return err
}

// watchPatience is the time within which a watch ends after its store was replaced.
const watchPatience = 5 * time.Second

// closeLibrary closes A, which must return ErrReplaced.
func (tr *trial) closeLibrary() error {
	_, err := tr.lib.do(command{Do: "stop"})
	var a answer
	if err == nil {
		a, err = tr.lib.do(command{Do: "close"})
	}
	if err == nil {
		err = tr.lib.wait()
	}
	tr.lib.gone.Store(true)
	switch {
	case err != nil:
		tr.f.add("hung", "Close of A: %v", err)
	case tr.spared() && tr.fenced(&write{Err: a.Err}):
	case a.Err == "":
		tr.f.add("error", "Close of A returned nil, want ErrReplaced")
	case !a.Replaced:
		tr.f.add("error", "Close of A returned another error than ErrReplaced: %s", a.Err)
	}
	return nil
}

func (tr *trial) aloneMCP(before *snapshot) error {
	m := tr.server
	switch tr.state {
	case closing:
		if err := m.wait(); err != nil {
			tr.f.add("hung", "A after the end of its input: %v", err)
		}
		m.gone.Store(true)
		return nil
	case writing:
		m.mark(3)
	case watching:
		if tr.e.other {
			if err := tr.editedByHand(before); err != nil {
				return err
			}
		}
	}
	for range 4 {
		m.create(1)
		if tr.died(m.process) {
			return nil
		}
	}
	return nil
}

func (tr *trial) aloneWatch(before *snapshot) error {
	w := tr.watch
	if tr.state == closing {
		if err := w.wait(); err != nil {
			tr.f.add("hung", "A after SIGTERM: %v", err)
		}
		w.gone.Store(true)
		return nil
	}
	if tr.spared() {
		return nil
	}
	if tr.state == writing && tr.e.other {
		if err := tr.editedByHand(before); err != nil {
			return err
		}
	}
	spoke := func() bool { return !w.alive() || strings.Contains(w.errors(), "replaced") || tr.told() }
	if !until(watchPatience, spoke) {
		tr.f.add("silent", "memctl watch has neither ended nor said anything %v after the event", watchPatience)
		return nil
	}
	if !w.alive() && !replacedText(w.errors()) {
		tr.f.add("error", "memctl watch ended with another error than ErrReplaced: %s", w.death()+w.errors())
	}
	return nil
}

// beside opens B, which writes while A continues.
func (tr *trial) beside() error {
	which := tr.rng.IntN(3)
	var err error
	switch which {
	case 0:
		var m *mcp
		if m, err = startMCP(tr.t, tr.path, "b", &tr.b); err == nil {
			tr.second = mcpParty{m}
		} else if errors.Is(err, errEnded) {
			err = fmt.Errorf("%w: %s", err, m.death())
		}
	case 1:
		var l *library
		if l, err = startLibrary(tr.t, tr.path, &tr.b); err == nil {
			tr.second = libraryParty{l}
			var a answer
			a, err = l.do(command{Do: "open", Prefix: "b", Background: true, Watch: tr.rng.IntN(2) == 0})
			if err == nil && a.Err != "" {
				err = errors.New(a.Err)
			}
		}
	case 2:
		c := &commands{t: tr, rec: &tr.b, prefix: "b"}
		tr.second = c
		if _, serr := os.Stat(tr.path); errors.Is(serr, os.ErrNotExist) {
			_, err = run(tr.path, "init")
		}
	}
	if err != nil && tr.named(err.Error()) {
		tr.refused, tr.second = true, nil
		return nil
	}
	if err != nil {
		tr.f.add("refused", "B cannot open what is at the path: %v", err)
		tr.second = nil
		return nil
	}
	if err := tr.second.put(2); err != nil {
		return err
	}
	tr.ready = now()
	// Both at once.
	var aside chan error
	switch {
	case tr.server != nil && tr.server.alive():
		aside = make(chan error, 1)
		go func() {
			tr.server.stop()
			tr.server.create(1)
			tr.server.write()
			tr.server.mark(3)
			tr.server.stop()
			aside <- nil
		}()
	case tr.lib != nil && tr.lib.alive() && tr.kind == kindLibrary && tr.state != idle:
		aside = make(chan error, 1)
		go func() {
			_, err := tr.lib.do(command{Do: "op", Op: "put"})
			if err == nil {
				_, err = tr.lib.do(command{Do: "op", Op: "flush"})
			}
			aside <- err
		}()
	}
	err = tr.second.put(6)
	if aside != nil {
		if aerr := <-aside; aerr != nil && !tr.died(tr.process()) {
			tr.f.add("hung", "A beside B: %v", aerr)
		}
	}
	return err
}

// process returns the process of A.
func (tr *trial) process() *process {
	switch {
	case tr.server != nil:
		return tr.server.process
	case tr.watch != nil:
		return tr.watch.process
	}
	return tr.lib.process
}

// end ends both processes, in the order of this run, and checks what is left.
func (tr *trial) end() error {
	alive := tr.process().alive()
	switch tr.order {
	case "A, then B":
		tr.endA(alive, false)
		tr.endB()
	case "A killed, then B":
		tr.process().kill()
		tr.endB()
	default:
		if tr.second != nil && tr.order == "B killed, then A" {
			tr.second.kill()
		} else {
			tr.endB()
		}
		tr.endA(alive, true)
	}
	return tr.judge()
}

func (tr *trial) endB() {
	if tr.second == nil {
		return
	}
	if err := tr.second.close(); err != nil {
		tr.f.add("refused", "the end of B: %v", err)
	}
}

// endA ends A. If it is the last one, a library must leave the folder at the path as it is.
func (tr *trial) endA(alive, last bool) {
	if !alive || !tr.process().alive() {
		return
	}
	var before snapshot
	if last {
		var err error
		if before, err = snap(tr.path); err != nil {
			tr.f.add("error", "%v", err)
		}
	}
	switch {
	case tr.kind == kindLibrary:
		if err := tr.closeLibrary(); err != nil {
			tr.f.add("hung", "%v", err)
		}
		if last && !tr.spared() {
			if err := tr.untouched(before, "Close of A, the last process,"); err != nil {
				tr.f.add("error", "%v", err)
			}
		}
	case tr.server != nil:
		_ = tr.server.in.Close()
		if err := tr.server.wait(); err != nil {
			tr.f.add("hung", "A after the end of its input: %v", err)
		}
	case tr.watch != nil:
		_ = tr.watch.cmd.Process.Signal(syscall.SIGTERM)
		if err := tr.watch.wait(); err != nil {
			tr.f.add("hung", "A after SIGTERM: %v", err)
		}
		if last && !tr.told() && (tr.e.other || tr.e.absent) {
			who := "the end of A, which has not said that it serves another store,"
			if err := tr.untouched(before, who); err != nil {
				tr.f.add("error", "%v", err)
			}
		}
	}
	tr.process().kill()
}

// mcpParty is B as a memctl mcp process.
type mcpParty struct{ *mcp }

func (p mcpParty) put(n int) error {
	for range n {
		p.create(1)
	}
	return nil
}

func (p mcpParty) close() error {
	_ = p.in.Close()
	return p.wait()
}

// libraryParty is B as an application.
type libraryParty struct{ *library }

func (p libraryParty) put(n int) error {
	_, err := p.do(command{Do: "put", N: n})
	return err
}

func (p libraryParty) close() error {
	a, err := p.do(command{Do: "close"})
	if err == nil && a.Err != "" {
		err = errors.New(a.Err)
	}
	return errors.Join(err, p.wait())
}

// commands is B as memctl put, a process for each write.
type commands struct {
	t      *trial
	rec    *record
	prefix string
	n      int
}

func (c *commands) put(n int) error {
	for range n {
		c.n++
		id := fmt.Sprintf("%s-%d", c.prefix, c.n)
		w := write{Op: "memctl put", IDs: []string{id}, Rev: 1, Begin: now()}
		_, err := run(c.t.path, "put", text(id, 1), "--id", id)
		w.End = now()
		if err != nil {
			w.Err = err.Error()
		}
		c.rec.add(w)
	}
	return nil
}

func (c *commands) close() error { return nil }
func (c *commands) kill()        {}

// revisions returns the revision of each memory in a store, by id. An entity has 1.
func revisions(dir string) (map[string]int, map[string]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	st, err := varve.Open(ctx, dir, &varve.Options{MustExist: true, NoBackground: true, LockWait: patience / 2})
	if err != nil {
		return nil, nil, err
	}
	at, texts := map[string]int{}, map[string]string{}
	for m, e := range st.Memories(ctx) {
		if e != nil {
			err = errors.Join(err, e)
			continue
		}
		at[m.ID] = max(1, revision(m.ID, m.Content))
		texts[m.ID] = m.Content
	}
	return at, texts, errors.Join(err, st.Close())
}
