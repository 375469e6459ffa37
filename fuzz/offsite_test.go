package fuzz

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/internal/vfs/sim"
	"github.com/varve-db/varve/remote"
	remotedir "github.com/varve-db/varve/remote/dir"
	"github.com/varve-db/varve/remote/sender"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// offsites is a store whose log is sent to a folder, over a network that loses, repeats and delays requests and loses
// answers, and the outside record of all that was written. What is cloned from the folder is compared with the record.
type offsites struct {
	s       *sim.Sim
	rng     *rand.Rand
	sealed  bool
	signers []string
	did     map[string]int
	wrong   []string
	acts    int // that are left to do in this boot
	n       int // contents that were made up
	writing int // writers of this boot that have not ended
	writes  map[string][]*sentWrite
	moments []time.Time

	geometry segment.Geometry

	added bool             // the copy was begun
	acked uint64           // newest version that was acknowledged
	sent  uint64           // newest version that was acknowledged before a Send that succeeded
	often int              // of 10 requests something happens to so many
	late  []func(p *place) // requests that the network delays
}

// sentWrite is an attempt to write a memory. Each memory has one writer.
type sentWrite struct {
	content    string    // "": a deletion
	version    uint64    // 0: not acknowledged
	lost       bool      // it was not acknowledged, and is not in the store
	begun, end time.Time // end is zero if it was not acknowledged
}

const (
	offsiteStore = "/store"
	offsiteCopy  = "/copy"
	offsiteURL   = "file://" + offsiteCopy
)

func (w *offsites) bad(format string, args ...any) {
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

// xored stands for the encryption of a sealed copy, whose random bytes would make each run different.
type xored struct {
	w io.Writer
}

func xor(b []byte) []byte {
	b = bytes.Clone(b)
	for i := range b {
		b[i] ^= 0xa5
	}
	return b
}

func (x xored) Write(b []byte) (int, error) { return x.w.Write(xor(b)) }
func (x xored) Close() error                { return nil }

type unxored struct{ r io.ReaderAt }

func (x unxored) ReadAt(b []byte, off int64) (int, error) {
	n, err := x.r.ReadAt(b, off)
	copy(b, xor(b[:n]))
	return n, err
}

func (w *offsites) options(p *sim.Proc) *varve.Options {
	o := options(p.FS, p.Rand(), p.Now, p.Wait)
	o.SealRemote = func([]string) (func(io.Writer) (io.WriteCloser, error), error) {
		return func(w io.Writer) (io.WriteCloser, error) { return xored{w}, nil }, nil
	}
	return o
}

// place is the folder as the process p sees it, behind the network.
type place struct {
	remote.Remote
	w *offsites
}

func (w *offsites) place(p *sim.Proc) (*place, error) {
	r, err := remotedir.Open(ctx, offsiteCopy, &remotedir.Options{FS: p.FS, Clock: p.Now, Sleep: p.Wait, Random: p.Rand()})
	if err != nil {
		return nil, err
	}
	return &place{r, w}, nil
}

var errNetwork = errors.New("the connection broke")

// call sends a request through the network. do may be called later, with the place as another process sees it.
func (r *place) call(name string, do func(r *place) error) error {
	w := r.w
	if w.rng.IntN(10) >= w.often {
		return do(r)
	}
	w.did[name]++
	switch w.rng.IntN(4) {
	case 0: // the request is lost
		return errNetwork
	case 1: // the answer is lost
		_ = do(r)
		return errNetwork
	case 2:
		_ = do(r)
		return do(r)
	}
	w.late = append(w.late, func(r *place) { _ = do(r) })
	return errNetwork
}

func (r *place) Head(ctx context.Context) (h remote.Position, err error) {
	err = r.call("head", func(r *place) (err error) {
		h, err = r.Remote.Head(ctx)
		return err
	})
	return h, err
}

func (r *place) Begin(ctx context.Context, a *remote.Anchor) (epoch uint64, err error) {
	own := *a
	err = r.call("begin", func(r *place) (err error) {
		epoch, err = r.Remote.Begin(ctx, &own)
		return err
	})
	return epoch, err
}

func (r *place) Append(ctx context.Context, p *remote.Piece) error {
	own := *p
	own.Bytes = bytes.Clone(p.Bytes)
	r.w.synced(p)
	if w := r.w; w.s.Odds.Cut > 0 && w.rng.IntN(20) == 0 { // before the store has recorded that it is sent
		defer func() { w.s.CutAt(w.s.Ops()+1+w.rng.IntN(20), w.s.Patterns[w.rng.IntN(len(w.s.Patterns))]) }()
	}
	return r.call("append", func(r *place) error { return r.Remote.Append(ctx, &own) })
}

// synced verifies that the store has all bytes of a piece also after a loss of power in which everything is lost that
// was not synced. A cut at random seldom shows that: it must come before the writer syncs what was sent.
func (w *offsites) synced(p *remote.Piece) {
	if w.sealed {
		return // the bytes of the piece are encrypted
	}
	left := w.s.Disk().Crash(crash.LoseAll, rand.New(rand.NewPCG(1, 1)))
	log := &past.Log{FS: left.Process("look"), Dir: offsiteStore + "/wal", Geometry: w.geometry}
	var has []byte
	for piece, err := range log.Pieces(ctx, p.From, p.To.LSN) {
		if err != nil {
			w.bad("a piece from %d to %d is sent, and after a loss of power the store lacks it: %v", p.From.LSN,
				p.To.LSN, err)
			return
		}
		has = append(has, piece.Bytes...)
	}
	if !bytes.Equal(has, p.Bytes) {
		w.bad("a piece from %d to %d is sent, and after a loss of power the store has %d of its %d bytes", p.From.LSN,
			p.To.LSN, len(has), len(p.Bytes))
	}
	w.did["synced"]++
}

// Save reads the snapshot first: a simulated process has one goroutine at a time.
func (r *place) Save(ctx context.Context, s *remote.Snapshot, body io.Reader) error {
	b, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	own := *s
	err = r.call("save", func(r *place) error { return r.Remote.Save(ctx, &own, bytes.NewReader(b)) })
	s.Size, s.SHA256 = own.Size, own.SHA256
	return err
}

func (r *place) Prune(ctx context.Context, epoch uint64, before uint64) (n int, err error) {
	err = r.call("prune", func(r *place) (err error) {
		n, err = r.Remote.Prune(ctx, epoch, before)
		return err
	})
	return n, err
}

// network does what was delayed, in any order, long after it was sent.
func (w *offsites) network(p *sim.Proc) {
	r, err := w.place(p)
	if err != nil {
		w.bad("network: %v", err)
		return
	}
	for w.writing > 0 || len(w.late) > 0 {
		p.Sleep(time.Duration(1+w.rng.IntN(200)) * time.Millisecond)
		if len(w.late) > 0 {
			i := w.rng.IntN(len(w.late))
			do := w.late[i]
			w.late = slices.Delete(w.late, i, i+1)
			w.did["delayed"]++
			do(r)
		}
	}
}

// send sends until all writers have ended.
func (w *offsites) send(p *sim.Proc) {
	for w.writing > 0 {
		st, err := varve.Open(ctx, offsiteStore, w.options(p))
		if err != nil {
			w.bad("%s: open: %v", p.Name, err)
			return
		}
		pause := []int{2, 20, 100}[w.rng.IntN(3)]
		for n := 1 + w.rng.IntN(30); n > 0 && w.writing > 0; n-- {
			w.sendOnce(p, st)
			p.Sleep(time.Duration(1+w.rng.IntN(pause)) * time.Millisecond)
		}
		if err := st.Close(); err != nil {
			w.bad("%s: close: %v", p.Name, err)
			return
		}
		switch w.rng.IntN(16) { // seldom for days: most writers end within a minute
		case 0:
			p.Sleep(25 * time.Hour)
		case 1:
			p.Sleep(8 * 24 * time.Hour)
		default:
			p.Sleep(time.Duration(w.rng.IntN(1000)) * time.Millisecond)
		}
	}
}

func (w *offsites) sendOnce(p *sim.Proc, st *varve.Store) {
	r, err := w.place(p)
	if err != nil {
		w.bad("%s: %v", p.Name, err)
		return
	}
	acked := w.acked
	w.geometry = storetest.Inner(st).Engine.Log().Past().Geometry
	of := st.Admin().Offsite()
	switch {
	case w.added:
		err = of.Send(ctx, r)
	case w.sealed:
		var signer string
		if signer, err = of.AddSealed(ctx, r, offsiteURL, []string{"recipient"}); err == nil {
			w.signers = append(w.signers, signer)
		}
	default:
		err = of.Add(ctx, r, offsiteURL)
	}
	switch {
	case err == nil:
		w.did["sent"]++
		w.added, w.sent = true, max(w.sent, acked)
	case errors.Is(err, sender.ErrStopped):
		w.bad("%s: %v", p.Name, err)
	case errors.Is(err, errNetwork), errors.Is(err, remote.ErrMoved), errors.Is(err, fs.ErrExist): // a repeated Save
		w.did["failed"]++
	default:
		w.bad("%s: sending: %v", p.Name, err)
	}
}

func (w *offsites) work(p *sim.Proc) {
	defer func() { w.writing-- }()
	rng := rand.New(rand.NewPCG(w.rng.Uint64(), 1))
	for w.acts > 0 {
		st, err := varve.Open(ctx, offsiteStore, w.options(p))
		if err != nil {
			w.bad("%s: open: %v", p.Name, err)
			return
		}
		for n := 5 + rng.IntN(40); n > 0 && w.acts > 0; n-- {
			w.acts--
			if err := w.step(p, st, rng); err != nil {
				w.bad("%s: %v", p.Name, err)
			}
		}
		if err := st.Close(); err != nil {
			w.bad("%s: close: %v", p.Name, err)
		}
	}
}

func (w *offsites) step(p *sim.Proc, st *varve.Store, rng *rand.Rand) error {
	switch n := rng.IntN(100); {
	case n == 0: // and it still writes when the sender has slept for days
		p.Sleep(time.Duration(rng.IntN(10*24)) * time.Hour)
	case n < 10:
		p.Sleep(time.Duration(rng.IntN(1000)) * time.Millisecond)
	}
	if rng.IntN(20) == 0 {
		w.moments = append(w.moments, p.Now())
	}
	id := fmt.Sprintf("%s.%d", p.Name, rng.IntN(4))
	switch rng.IntN(12) {
	case 0:
		return st.Flush(ctx)
	case 1:
		return st.Admin().Compact(ctx)
	case 2, 3:
		a := &sentWrite{begun: p.Now()}
		before := len(w.writes[id])
		w.writes[id] = append(w.writes[id], a)
		err := st.Delete(ctx, id)
		if errors.Is(err, varve.ErrNotFound) {
			w.writes[id] = slices.Delete(w.writes[id], before, before+1)
			return nil
		}
		if err != nil {
			return err
		}
		a.end = p.Now()
		for v, err := range st.History(ctx, id) { // the oldest version first
			if err != nil {
				return fmt.Errorf("the history of %s after its deletion: %w", id, err)
			}
			a.version = v.LSN
		}
		w.acked = max(w.acked, a.version)
		return nil
	}
	w.n++
	a := &sentWrite{content: content(fmt.Sprintf("w%06d", w.n), 8+rng.IntN(2000)), begun: p.Now()}
	w.writes[id] = append(w.writes[id], a)
	m, err := st.Put(ctx, varve.Memory{ID: id, Content: a.content})
	if err != nil {
		return err
	}
	a.version, a.end = m.Version, p.Now()
	w.acked = max(w.acked, m.Version)
	return nil
}

// settle finds out, after a recovery, which of the writes that were not acknowledged the store has.
func (w *offsites) settle(p *sim.Proc) {
	st, err := varve.Open(ctx, offsiteStore, w.options(p))
	if err != nil {
		w.bad("the store does not open: %v", err)
		return
	}
	for _, id := range slices.Sorted(maps.Keys(w.writes)) {
		writes := w.writes[id]
		if !slices.ContainsFunc(writes, func(a *sentWrite) bool { return a.version == 0 && !a.lost }) {
			continue
		}
		var have []varve.Version
		for v, err := range st.History(ctx, id) {
			if errors.Is(err, varve.ErrNotFound) {
				break
			}
			if err != nil {
				w.bad("the history of %s: %v", id, err)
				return
			}
			have = append(have, v)
		}
		last := uint64(0)
		for i, a := range writes {
			if a.version != 0 {
				last = a.version
			}
			if a.version != 0 || a.lost {
				continue
			}
			a.lost = true
			for _, v := range have {
				if v.LSN > last && !claimed(writes[i+1:], v.LSN) && v.Deleted == (a.content == "") &&
					(v.Deleted || bytes.Contains(v.Document, []byte(tokenOf(a.content)))) {
					a.lost, a.version, last = false, v.LSN, v.LSN
					w.did["kept"]++
					break
				}
			}
			if a.lost {
				w.did["lost"]++
			}
		}
	}
	if err := st.Close(); err != nil {
		w.bad("close: %v", err)
	}
}

// claimed reports whether a version is that of one of the writes, or newer than one.
func claimed(writes []*sentWrite, version uint64) bool {
	return slices.ContainsFunc(writes, func(a *sentWrite) bool { return a.version != 0 && a.version <= version })
}

// clone clones the copy into a folder, and returns what the memories are.
func (w *offsites) clone(p *sim.Proc, to string, at time.Time) (report varve.CloneReport, have map[string]varve.Memory,
	err error) {
	r, err := remotedir.Open(ctx, offsiteCopy, &remotedir.Options{FS: p.FS, Clock: p.Now, Sleep: p.Wait, Random: p.Rand()})
	if err != nil {
		return report, nil, err
	}
	o := &varve.CloneOptions{At: at, Options: w.options(p)}
	if w.sealed {
		o.Signers = w.signers
		o.Unseal = func(r io.ReaderAt, n int64) (io.ReaderAt, int64, error) { return unxored{r}, n, nil }
	}
	if report, err = varve.Clone(ctx, r, to, o); err != nil {
		return report, nil, err
	}
	ro := w.options(p)
	ro.ReadOnly = true
	st, err := varve.Open(ctx, to, ro)
	if err != nil {
		return report, nil, err
	}
	have = map[string]varve.Memory{}
	for m, err := range st.Memories(ctx) {
		if err != nil {
			return report, nil, err
		}
		have[m.ID] = m
	}
	return report, have, st.Close()
}

// restored verifies that a clone is the store as of a moment: before says of a write that was acknowledged, or that the
// store has, whether the moment has it, and unsure that either is right.
func (w *offsites) restored(what string, have map[string]varve.Memory, exact bool,
	before func(a *sentWrite) (is, unsure bool)) {
	for id := range have {
		if w.writes[id] == nil {
			w.bad("%s: has %s, which was never written", what, id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.writes)) {
		allowed := []*sentWrite{{}} // absent
		for _, a := range w.writes[id] {
			if a.lost {
				continue
			}
			switch is, unsure := before(a); {
			case unsure:
				allowed = append(allowed, a)
			case is:
				allowed = []*sentWrite{a}
			}
		}
		m, ok := have[id]
		fits := slices.ContainsFunc(allowed, func(a *sentWrite) bool {
			return ok == (a.content != "") && m.Content == a.content && (!exact || !ok || a.version == m.Version)
		})
		if !fits {
			w.bad("%s: %s is %.30q (version %d), and may be only %s", what, id, m.Content, m.Version, shown(allowed))
		}
		w.did["compared"]++
	}
}

func shown(list []*sentWrite) (s string) {
	for _, a := range list {
		s += fmt.Sprintf(" %.30q (version %d)", a.content, a.version)
	}
	return s
}

// look compares what the copy has now with the record. Nothing is sent meanwhile.
func (w *offsites) look(p *sim.Proc) {
	w.settle(p)
	if !w.added || len(w.wrong) > 0 {
		return
	}
	w.n++
	report, have, err := w.clone(p, fmt.Sprintf("/clone%d", w.n), time.Time{})
	if err != nil {
		w.bad("the newest moment cannot be cloned: %v", err)
		return
	}
	if report.Position <= w.sent {
		w.bad("the copy ends at %d, and version %d was reported as sent", report.Position, w.sent)
	}
	w.restored("the newest moment", have, true, func(a *sentWrite) (is, unsure bool) {
		return a.version < report.Position, false
	})
	for range 2 {
		if len(w.moments) == 0 {
			return
		}
		w.n++
		at := w.moments[w.rng.IntN(len(w.moments))]
		report, have, err := w.clone(p, fmt.Sprintf("/clone%d", w.n), at)
		if errors.Is(err, varve.ErrNotFound) { // before the first snapshot
			w.did["too early"]++
			continue
		}
		if err != nil {
			w.bad("the moment %v cannot be cloned: %v", at, err)
			return
		}
		w.did["moment"]++
		w.restored(fmt.Sprint("the moment ", at), have, false, func(a *sentWrite) (is, unsure bool) {
			switch {
			case a.version >= report.Position || a.begun.After(at):
				return false, a.begun.Equal(at)
			case a.end.IsZero(), a.end.After(at):
				return false, true
			}
			return true, false
		})
	}
}

func (w *offsites) run() error {
	view := w.s.Disk().Process("maker")
	if _, err := remotedir.Create(ctx, offsiteCopy, &remotedir.Options{FS: view, Clock: w.s.Now,
		Sleep: func(context.Context, time.Duration) error { return nil }}); err != nil {
		return err
	}
	w.s.OnKill = func(p *sim.Proc) {
		w.did["kill"]++
		f := w.work
		switch p.Name {
		case "send":
			f = w.send
		case "network":
			f = w.network
		default:
			w.writing++
		}
		w.s.Process(p.Name, f)
	}
	for boot := range 1 + w.rng.IntN(4) {
		w.acts, w.often, w.late = 30+w.rng.IntN(150), w.rng.IntN(6), nil
		w.s.Odds = sim.Odds{Switch: 2 + w.rng.IntN(40), Stop: []int{3000, 500, 100}[w.rng.IntN(3)],
			Kill: []int{0, 4000, 1500}[w.rng.IntN(3)],
			Cut:  []int{0, 1000, 5000}[w.rng.IntN(3)]}
		w.writing = 1 + w.rng.IntN(2)
		for i := range w.writing {
			w.s.Process(fmt.Sprint("w", i), w.work)
		}
		w.s.Process("send", w.send)
		w.s.Process("network", w.network)
		if err := w.s.Run(); err != nil {
			return fmt.Errorf("boot %d: %w", boot, err)
		}
		if !w.s.WasCut() {
			w.s.Cut(w.s.Patterns[w.rng.IntN(len(w.s.Patterns))])
		}
		w.did["cut"]++
		w.s.Odds = sim.Odds{}
		w.s.Process("look", w.look)
		if err := w.s.Run(); err != nil {
			return fmt.Errorf("after boot %d: %w", boot, err)
		}
		if len(w.wrong) > 0 {
			return fmt.Errorf("boot %d:\n%s", boot, joinWrong(w.wrong))
		}
	}
	// When the trouble is over, all that was acknowledged is sent, and can be cloned.
	w.often = 0
	w.writing = 1
	w.s.Process("send", func(p *sim.Proc) {
		st, err := varve.Open(ctx, offsiteStore, w.options(p))
		if err != nil {
			w.bad("open: %v", err)
			return
		}
		w.sendOnce(p, st)
		if err := st.Close(); err != nil {
			w.bad("close: %v", err)
		}
		if w.sent != w.acked {
			w.bad("sent up to version %d, and %d was acknowledged", w.sent, w.acked)
		}
		w.look(p)
	})
	if err := w.s.Run(); err != nil {
		return err
	}
	if len(w.wrong) > 0 {
		return fmt.Errorf("in the end:\n%s", joinWrong(w.wrong))
	}
	return nil
}

func simulateOffsite(t *testing.T, seeds int, sealed bool) {
	simulateSeeds(t, seeds, func(seed uint64) (*sim.Sim, map[string]int, func() error) {
		w := &offsites{s: sim.New(seed), rng: rand.New(rand.NewPCG(seed, 57)), did: map[string]int{},
			writes: map[string][]*sentWrite{}, sealed: sealed}
		if w.rng.IntN(3) == 0 {
			w.s.Disk().SetLacks(crash.Lacks{Exchange: w.rng.IntN(2) == 0, Link: w.rng.IntN(2) == 0,
				Lease: w.rng.IntN(2) == 0, Barrier: w.rng.IntN(2) == 0})
		}
		return w.s, w.did, w.run
	})
}

// A store is sent to a folder while requests and answers are lost, repeated and delayed, processes are killed and the
// power fails: each moment that is cloned is what the record has of it, and everything that was reported as sent is
// there.
func TestSimOffsite(t *testing.T) { simulateOffsite(t, 150, false) }

// The same with a sealed copy.
func TestSimOffsiteSealed(t *testing.T) { simulateOffsite(t, 100, true) }
