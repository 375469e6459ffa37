package sender_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/remote/dir"
	"github.com/varve-db/varve/remote/remotetest"
	"github.com/varve-db/varve/remote/sender"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// local is a store with a log in a folder, and the record of everything that the log ever had.
type local struct {
	t       testing.TB
	fs      vfs.FS
	past    *past.Log
	log     *remotetest.Log
	durable segment.LSN
	now     time.Time
	files   map[uint64][]byte            // the segments
	history map[uint64]map[uint64][]byte // by epoch of the log: the segments as they were last in that epoch
	also    map[uint64]map[uint64][]byte // by epoch: as they were before a purge
	texts   [][]byte                     // keys that a purge has erased
	taken   int                          // number of snapshots that were begun
	gather  time.Duration                // of the options
	erase   uint64                       // of the options
	clean   segment.LSN                  // result of Erased
	whole   bool                         // the archive has the whole log, from the segment oldest on
	oldest  uint64
	during  func() // called once while a snapshot is made; may be nil
}

func newLocal(t testing.TB, fsys vfs.FS, seed uint64) *local {
	l := &local{t: t, fs: fsys, log: remotetest.NewLog(seed), now: time.Unix(1_800_000_000, 0), gather: -1,
		files: map[uint64][]byte{}, history: map[uint64]map[uint64][]byte{}, also: map[uint64]map[uint64][]byte{}}
	l.past = &past.Log{FS: fsys, Dir: "/store/wal", Geometry: l.log.Geometry}
	l.check(vfs.MkdirAll(fsys, "/store/wal/archive", 0o700))
	l.grow(1)
	return l
}

func (l *local) check(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *local) id() past.ID {
	id, err := l.past.ID()
	l.check(err)
	return id
}

// grow writes batches, and makes them durable.
func (l *local) grow(pieces int) {
	first := len(l.log.Pieces)
	for _, p := range l.log.Grow(pieces, 1).Pieces[first:] {
		at, _ := p.At()
		n := l.log.Geometry.Number(at)
		l.files[n] = append(l.files[n][:l.log.Geometry.Offset(at)], p.Bytes...)
		l.write(n)
	}
	l.durable = l.log.End.LSN
	l.remember()
}

func (l *local) write(number uint64) {
	name := "/store/wal/" + segment.Name(number)
	f, err := vfs.CreateNew(l.fs, name, 0o600)
	l.check(err)
	_, err = f.WriteAt(append(bytes.Clone(l.files[number]), make([]byte, segment.HeaderSize)...), 0)
	l.check(errors.Join(err, f.Close()))
}

func (l *local) remember() {
	seen := l.history[l.id().Epoch]
	if seen == nil {
		seen = map[uint64][]byte{}
		l.history[l.id().Epoch] = seen
	}
	for n, b := range l.files {
		seen[n] = bytes.Clone(b)
	}
}

// release removes the segments before the last one, as a full archive does.
func (l *local) release() {
	last := l.log.Geometry.Number(l.durable - 1)
	for n := range l.files {
		if n < last {
			delete(l.files, n)
			l.check(l.fs.Remove("/store/wal/" + segment.Name(n)))
		}
	}
}

// repair begins another log after this one.
func (l *local) repair() {
	next := l.log.Geometry.Start(l.log.Geometry.Number(l.log.End.LSN) + 2)
	l.check(l.past.Broken(past.Repaired, next, l.now, 0o600))
	l.log.End, l.oldest = past.Mark{LSN: next}, l.log.Geometry.Number(next)
	l.grow(1)
}

// purge erases the entries of a key everywhere in the log.
func (l *local) purge(key string) {
	before := map[uint64][]byte{}
	for n, b := range l.files {
		before[n] = bytes.Clone(b)
		l.log.Geometry.EraseIn(b, l.log.Geometry.Start(n), func(_ segment.LSN, k string, v []byte) bool {
			return k == key && (!l.whole || len(v) >= 8) // a smaller one would be damage after that
		}, nil)
		l.write(n)
	}
	old := l.id().Epoch
	l.also[old] = before
	l.remember() // a piece that is sent now has the erased frames
	l.texts = append(l.texts, []byte(key))
	l.check(l.past.Broken(past.Purged, l.durable, l.now, 0o600))
	l.remember()
}

func (l *local) Past() *past.Log      { return l.past }
func (l *local) Durable() segment.LSN { return l.durable }

// Erased is the position that a test has set.
func (l *local) Erased(context.Context, segment.LSN) (segment.LSN, error) { return l.clean, nil }

// Base is where the last segment begins, or the first one.
func (l *local) Base(context.Context) (past.Mark, error) {
	n := l.log.Geometry.Number(l.durable - 1)
	if l.whole {
		n = max(l.oldest, slices.Min(slices.Collect(maps.Keys(l.files))))
	}
	s, _, err := l.past.Start(n)
	if err != nil {
		return past.Mark{}, err
	}
	if s.PrevEnd == 0 {
		return past.Mark{LSN: l.log.Geometry.Start(n)}, nil
	}
	return past.Mark{LSN: s.PrevEnd, Sum: s.PrevSum}, nil
}

type snapshot struct {
	io.Reader
	begin, end past.Mark
}

func (s *snapshot) Begin() past.Mark { return s.begin }
func (s *snapshot) End() past.Mark   { return s.end }
func (s *snapshot) Close() error     { return nil }

func (l *local) Snapshot(ctx context.Context) (sender.Snapshot, error) {
	base, err := l.Base(ctx)
	if err != nil {
		return nil, err
	}
	l.taken++
	end, err := l.past.Chain(ctx, l.durable)
	body := bytes.NewReader(l.body(l.id().Epoch, base))
	if during := l.during; during != nil {
		l.during = nil
		during()
	}
	return &snapshot{body, base, end}, err
}

func (l *local) body(epoch uint64, begin past.Mark) []byte {
	return []byte(fmt.Sprintf("snapshot of log %d from %v", epoch, begin))
}

// compare compares everything in the remote with the record: every piece has the bytes that the log had there, or has
// with erased frames, and follows the one before it.
func (l *local) compare(r remote.Remote) (end map[uint64]past.Mark) {
	l.t.Helper()
	ctx := context.Background()
	epochs, err := r.Epochs(ctx)
	l.check(err)
	end = map[uint64]past.Mark{}
	for _, e := range epochs {
		at := e.From
		for p, err := range r.Read(ctx, e.Number, e.From.LSN) {
			l.check(err)
			l.check(p.Check(l.log.Geometry))
			if p.From != at {
				l.t.Fatalf("epoch %d: a piece from %v behind %v", e.Number, p.From, at)
			}
			pos, _ := p.At()
			n, off := l.log.Geometry.Number(pos), l.log.Geometry.Offset(pos)
			if !l.had(e.Log, n, off, p.Bytes) {
				l.t.Fatalf("epoch %d: the piece from %v has bytes that log %d never had", e.Number, p.From, e.Log)
			}
			at = p.To
		}
		end[e.Number] = at
	}
	list, err := r.Snapshots(ctx)
	l.check(err)
	for _, s := range list {
		b, err := r.Open(ctx, s.ID)
		l.check(err)
		text, err := io.ReadAll(io.NewSectionReader(b, 0, b.Size()))
		l.check(errors.Join(err, b.Close()))
		known := false
		for epoch := range l.history {
			known = known || epoch >= s.Log && bytes.Equal(text, l.body(epoch, s.Begin))
		}
		if !known {
			l.t.Fatalf("snapshot: %q", text)
		}
	}
	return end
}

// had reports whether a segment had bytes in an epoch of the log, or in a later one, which a purge has begun.
func (l *local) had(epoch, number uint64, off int64, part []byte) bool {
	for _, states := range []map[uint64]map[uint64][]byte{l.history, l.also} {
		for e, files := range states {
			if e >= epoch && has(files[number], off, part) {
				return true
			}
		}
	}
	return false
}

func has(b []byte, off int64, part []byte) bool {
	return int64(len(b)) >= off+int64(len(part)) && bytes.Equal(b[off:off+int64(len(part))], part)
}

var errFlaky = errors.New("the connection broke")

// flaky is a remote whose calls fail before or after they are done, are done twice, or are done much later.
type flaky struct {
	remote.Remote
	rng     *rand.Rand
	often   int // of 10 calls
	delayed []func()
	counts  map[string]int
}

func (f *flaky) call(name string, do func() error) error {
	if f.rng.IntN(10) >= f.often {
		return do()
	}
	f.counts[name]++
	switch f.rng.IntN(4) {
	case 0:
		return errFlaky
	case 1:
		_ = do()
		return errFlaky
	case 2:
		_ = do()
		return do()
	}
	f.delayed = append(f.delayed, func() { _ = do() })
	return errFlaky
}

// late does what was delayed, in any order.
func (f *flaky) late(all bool) {
	for len(f.delayed) > 0 && (all || f.rng.IntN(2) > 0) {
		i := f.rng.IntN(len(f.delayed))
		do := f.delayed[i]
		f.delayed = slices.Delete(f.delayed, i, i+1)
		do()
	}
}

func (f *flaky) Append(ctx context.Context, p *remote.Piece) error {
	own := *p
	own.Bytes = bytes.Clone(p.Bytes)
	return f.call("append", func() error { return f.Remote.Append(ctx, &own) })
}

func (f *flaky) Begin(ctx context.Context, a *remote.Anchor) (epoch uint64, err error) {
	own := *a
	err = f.call("begin", func() (err error) {
		epoch, err = f.Remote.Begin(ctx, &own)
		return err
	})
	return epoch, err
}

func (f *flaky) Head(ctx context.Context) (h remote.Position, err error) {
	f.late(false)
	err = f.call("head", func() (err error) {
		h, err = f.Remote.Head(ctx)
		return err
	})
	return h, err
}

func (f *flaky) Prune(ctx context.Context, epoch uint64, before segment.LSN) (n int, err error) {
	err = f.call("prune", func() (err error) {
		n, err = f.Remote.Prune(ctx, epoch, before)
		return err
	})
	return n, err
}

func (f *flaky) Save(ctx context.Context, s *remote.Snapshot, body io.Reader) error {
	if f.rng.IntN(10) < f.often {
		if f.counts["save"]++; f.rng.IntN(2) > 0 {
			return errFlaky
		}
		if err := f.Remote.Save(ctx, s, body); err != nil {
			return err
		}
		return errFlaky
	}
	return f.Remote.Save(ctx, s, body)
}

// memory is a Keeper whose Save fails before or after it is done.
type memory struct {
	b     sender.Binding
	flaky *flaky
}

func (m *memory) Load(context.Context) (sender.Binding, error) { return m.b, nil }
func (m *memory) Save(_ context.Context, b sender.Binding) error {
	if m.flaky == nil || m.flaky.rng.IntN(20) >= m.flaky.often {
		m.b = b
		return nil
	}
	m.flaky.counts["keep"]++
	if m.flaky.rng.IntN(2) > 0 {
		m.b = b
	}
	return errFlaky
}

func options(l *local) sender.Options {
	return sender.Options{SnapshotBytes: 200 << 10, Gather: l.gather, Erase: l.erase,
		Clock: func() time.Time { return l.now },
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}
}

func place(t testing.TB, fsys vfs.FS) remote.Remote {
	t.Helper()
	o := &dir.Options{FS: fsys, Sleep: func(context.Context, time.Duration) error { return nil }}
	r, err := dir.Open(t.Context(), "/copy", o)
	if errors.Is(err, remote.ErrNoRemote) {
		r, err = dir.Create(t.Context(), "/copy", o)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func bind(t testing.TB, r remote.Remote, l *local) *memory {
	t.Helper()
	k := &memory{}
	if _, err := sender.Bind(t.Context(), r, l.log.Geometry.UUID, k, nil); err != nil {
		t.Fatal(err)
	}
	return k
}

func start(t testing.TB, r remote.Remote, l *local, k sender.Keeper) *sender.Sender {
	t.Helper()
	s, err := sender.New(t.Context(), r, l, k, options(l))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Whatever the remote and the file of the binding do, whenever the sender is killed, whatever happens to the store: the
// remote has only what the log had, what was recorded as sent is there, and when the trouble is over it has everything
// up to the end of the log and a snapshot that the pieces complete.
func TestTrouble(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	ctx := context.Background()
	seeds := uint64(60)
	if proofs.Long() {
		seeds = 2000
	}
	counts := map[string]int{}
	created := crash.New()
	place(t, created.Process("maker"))
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 7))
		process := created.Copy().Process("store")
		l := newLocal(t, process, seed)
		if l.whole = seed%4 > 1; seed%2 == 0 {
			l.gather = 10 * time.Hour
		}
		quiet := place(t, process)
		f := &flaky{Remote: quiet, rng: rng, often: 1 + rng.IntN(5), counts: counts}
		k := bind(t, quiet, l)
		k.flaky = f
		s := start(t, f, l, k)
		for range 60 {
			l.now = l.now.Add(time.Duration(rng.IntN(3600*5)) * time.Second)
			switch rng.IntN(24) {
			case 0:
				counts["repaired"]++
				l.repair()
			case 1:
				counts["purged"]++
				l.purge(fmt.Sprintf("m%d", rng.IntN(50)))
			case 2:
				l.release()
			case 3:
				counts["killed"]++
				s = start(t, f, l, k)
			case 4, 5, 6:
				if err := s.Maintain(ctx); err != nil && !errors.Is(err, errFlaky) {
					t.Fatalf("seed %d: %v", seed, err)
				}
			default:
				l.grow(1 + rng.IntN(8))
			}
			rerr := s.Round(ctx)
			if errors.Is(rerr, sender.ErrStopped) || rerr != nil && !expected(rerr) {
				t.Fatalf("seed %d: %v", seed, rerr)
			}
			sent, ok, err := l.past.Sent(l.durable)
			head, herr := quiet.Head(ctx)
			same := head.Log == sent.ID.Epoch && l.gather < 0 || rerr == nil // otherwise an epoch may have begun since
			if herr != nil || ok && err == nil && same && head.At.LSN < sent.Mark.LSN {
				t.Fatalf("seed %d: %v was recorded as sent, the remote has %+v (%v)", seed, sent.Mark, head, herr)
			}
		}
		l.compare(quiet)
		f.late(true)
		l.compare(quiet)
		f.often, l.gather = 0, -1
		s = start(t, f, l, k)
		if err := s.Round(ctx); err != nil {
			t.Fatalf("seed %d: afterwards: %v", seed, err)
		}
		if err := s.Maintain(ctx); err != nil {
			t.Fatalf("seed %d: afterwards: %v", seed, err)
		}
		head, err := quiet.Head(ctx)
		if ends := l.compare(quiet); err != nil || head.At != l.log.End || ends[head.Epoch] != l.log.End ||
			head.Log != l.id().Epoch {
			t.Fatalf("seed %d: afterwards the remote ends at %+v, the log at %v; %v", seed, head, l.log.End, err)
		}
		l.restorable(quiet, head)
		if st, behind := s.Status(); behind != 0 || st.Sent != l.log.End || st.Err != nil || st.Success != l.now {
			t.Fatalf("seed %d: status %+v, %d bytes behind", seed, st, behind)
		}
	}
	t.Log(counts)
	for _, name := range []string{"append", "begin", "head", "prune", "save", "keep", "repaired", "purged", "killed"} {
		if counts[name] == 0 {
			t.Errorf("no trouble with %s", name)
		}
	}
}

// restorable verifies that there is a snapshot that the pieces complete up to the newest entry, and that nothing is
// left of what was purged.
func (l *local) restorable(r remote.Remote, head remote.Position) {
	l.t.Helper()
	list, err := r.Snapshots(context.Background())
	l.check(err)
	found := false
	for _, s := range list {
		if s.Epoch != head.Epoch || s.End.LSN > head.At.LSN {
			continue
		}
		at := s.Begin
		for p, err := range r.Read(context.Background(), s.Epoch, s.Begin.LSN) {
			l.check(err)
			if p.From.LSN <= at.LSN {
				at = p.To
			}
		}
		found = found || at == head.At
	}
	if !found {
		l.t.Fatalf("no snapshot of %d is complete up to %v", len(list), head)
	}
}

func expected(err error) bool {
	return errors.Is(err, errFlaky) || errors.Is(err, remote.ErrMoved)
}

// After a purge nothing of the purged entries is in the remote, as soon as the next snapshot is saved.
func TestPurged(t *testing.T) {
	t.Parallel()
	process := crash.New().Process("store")
	l, r := newLocal(t, process, 1), place(t, process)
	s := start(t, r, l, bind(t, r, l))
	for range 3 {
		l.grow(40)
		must(t, s.Round(t.Context()))
		must(t, s.Maintain(t.Context()))
	}
	count := func(key string) (n int) {
		epochs, err := r.Epochs(t.Context())
		must(t, err)
		for _, e := range epochs {
			for p, err := range r.Read(t.Context(), e.Number, e.From.LSN) {
				must(t, err)
				at, _ := p.At()
				found := l.log.Geometry.EraseIn(bytes.Clone(p.Bytes), at, func(_ segment.LSN, k string, _ []byte) bool {
					return k == key
				}, nil)
				n += found.Wanted
			}
		}
		return n
	}
	if count("m7") == 0 {
		t.Fatal("the remote has no entry of the key")
	}
	l.now = l.now.Add(48 * time.Hour)
	l.during = func() { l.purge("m7") }
	must(t, s.Maintain(t.Context()))
	if list, err := r.Snapshots(t.Context()); err != nil || l.during != nil || list[len(list)-1].Time.Equal(l.now) {
		t.Error("a snapshot that may have what a purge erased was kept:", list, err)
	}
	must(t, s.Round(t.Context()))
	if st, _ := s.Status(); st.Reason != past.Purged.String() {
		t.Error(st.Reason)
	}
	must(t, s.Maintain(t.Context()))
	if n := count("m7"); n > 0 {
		t.Errorf("the remote still has %d purged entries", n)
	}
	if list, err := r.Snapshots(t.Context()); err != nil || len(list) != 1 {
		t.Error(list, err)
	}
	l.grow(5)
	must(t, s.Round(t.Context()))
	l.compare(r)
}

// undropped is a remote whose Drop fails.
type undropped struct {
	remote.Remote
	broken bool
}

func (u *undropped) Drop(ctx context.Context, id uuid.UUID) error {
	if u.broken {
		return errFlaky
	}
	return u.Remote.Drop(ctx, id)
}

// A removal after a purge that fails is repeated without another snapshot, and what is damaged does not stop the rest.
func TestPurgedLater(t *testing.T) {
	t.Parallel()
	process := crash.New().Process("store")
	l, r := newLocal(t, process, 1), place(t, process)
	u := &undropped{Remote: r}
	k := bind(t, r, l)
	s := start(t, u, l, k)
	for range 3 {
		l.grow(40)
		must(t, s.Round(t.Context()))
		must(t, s.Maintain(t.Context()))
		l.now = l.now.Add(48 * time.Hour)
	}
	old, err := r.Snapshots(t.Context())
	if err != nil || len(old) != 3 {
		t.Fatal(old, err)
	}
	l.purge("m7")
	must(t, s.Round(t.Context()))
	u.broken = true
	taken := l.taken
	for range 3 {
		if err := s.Maintain(t.Context()); !errors.Is(err, errFlaky) {
			t.Fatal(err)
		}
	}
	if l.taken != taken+1 || !k.b.Snapshot.Erase || k.b.Snapshot.Now {
		t.Errorf("%d snapshots for one purge: %+v", l.taken-taken, k.b)
	}
	f, err := process.OpenFile("/copy/snapshots/"+old[0].ID.String()+".meta", os.O_RDWR, 0)
	must(t, err)
	_, err = f.WriteAt([]byte("damage"), 30)
	must(t, errors.Join(err, f.Close()))
	u.broken = false
	s = start(t, u, l, k)
	if err := s.Maintain(t.Context()); !errors.Is(err, errs.ErrCorrupt) || !k.b.Snapshot.Erase {
		t.Errorf("what is damaged may have what was purged: %v", err)
	}
	if list, err := r.Snapshots(t.Context()); len(list) != 1 || list[0].Epoch != 2 || !errors.Is(err, errs.ErrCorrupt) {
		t.Errorf("%+v, %v", list, err)
	}
	must(t, r.Drop(t.Context(), old[0].ID))
	must(t, s.Maintain(t.Context()))
	if l.taken != taken+1 || k.b.Snapshot.Erase {
		t.Errorf("%d snapshots for one purge: %+v", l.taken-taken, k.b)
	}
}

// lossy is a remote whose Begin fails before it is done, then after it is done.
type lossy struct {
	remote.Remote
	before, after bool
}

func (l *lossy) Begin(ctx context.Context, a *remote.Anchor) (uint64, error) {
	if l.before {
		return 0, errFlaky
	}
	epoch, err := l.Remote.Begin(ctx, a)
	if l.after {
		return 0, errFlaky
	}
	return epoch, err
}

// A purge after the request for an epoch was recorded, and the answer to that request is lost: what was purged goes.
func TestPurgedBeforeLostAnswer(t *testing.T) {
	t.Parallel()
	process := crash.New().Process("store")
	l, r := newLocal(t, process, 1), place(t, process)
	lost := &lossy{Remote: r}
	k := bind(t, r, l)
	s := start(t, lost, l, k)
	l.grow(40)
	must(t, s.Round(t.Context()))
	must(t, s.Maintain(t.Context()))
	l.repair()
	lost.before = true
	if err := s.Round(t.Context()); !errors.Is(err, errFlaky) || k.b.Request == uuid.Nil || k.b.Snapshot.Erase {
		t.Fatal(err, k.b)
	}
	l.purge("m7")
	lost.before, lost.after = false, true
	if err := s.Round(t.Context()); !errors.Is(err, errFlaky) {
		t.Fatal(err)
	}
	lost.after = false
	must(t, s.Round(t.Context()))
	if !k.b.Snapshot.Now || !k.b.Snapshot.Erase || k.b.Request != uuid.Nil || k.b.Epoch != 2 {
		t.Errorf("the purge is forgotten: %+v", k.b)
	}
	must(t, s.Maintain(t.Context()))
	epochs, err := r.Epochs(t.Context())
	if list, serr := r.Snapshots(t.Context()); err != nil || serr != nil || len(list) != 1 || len(epochs) != 1 {
		t.Errorf("what is before the purge is still there: %+v %+v %v %v", epochs, list, err, serr)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A remote that was away until the log is no longer kept: the gap is named, and an epoch begins with a snapshot.
func TestGap(t *testing.T) {
	t.Parallel()
	process := crash.New().Process("store")
	l, r := newLocal(t, process, 1), place(t, process)
	s := start(t, r, l, bind(t, r, l))
	l.grow(10)
	must(t, s.Round(t.Context()))
	must(t, s.Maintain(t.Context()))
	end := l.log.End
	l.grow(100)
	l.release()
	must(t, s.Round(t.Context()))
	st, _ := s.Status()
	if st.Gap == nil || st.Gap.From != end.LSN || st.Gap.To <= st.Gap.From || st.Epoch != 2 || st.Reason == "" {
		t.Errorf("status %+v", st)
	}
	taken := l.taken
	must(t, s.Maintain(t.Context()))
	if l.taken != taken+1 {
		t.Error("no snapshot after the gap")
	}
	head := remotetest.Head(t, r)
	if ends := l.compare(r); ends[1] != end || ends[2] != l.log.End {
		t.Error(ends)
	}
	l.restorable(r, head)
}

// A damaged log where a snapshot would need it, too, is an error, and no epoch is begun again and again.
func TestDamagedLog(t *testing.T) {
	t.Parallel()
	process := crash.New().Process("store")
	l, r := newLocal(t, process, 1), place(t, process)
	s := start(t, r, l, bind(t, r, l))
	must(t, s.Round(t.Context()))
	l.grow(5)
	good := bytes.Clone(l.files[1])
	l.files[1][l.log.Geometry.Offset(l.log.Pieces[2].From.LSN)+70] ^= 1
	l.write(1)
	for range 3 {
		var gap *past.GapError
		if err := s.Round(t.Context()); !errors.As(err, &gap) || errors.Is(err, sender.ErrStopped) {
			t.Fatal(err)
		}
	}
	if st, _ := s.Status(); st.Epoch != 1 {
		t.Errorf("status %+v", st)
	}
	l.files[1] = good
	l.write(1)
	must(t, s.Round(t.Context()))
	if h := remotetest.Head(t, r); h.At != l.log.End || h.Epoch != 1 {
		t.Error(h)
	}
}

// Where sending could overwrite what another sender means, nothing is sent any more.
func TestStopped(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	type scene func(t *testing.T, l *local, r remote.Remote, k *memory) (*local, remote.Remote, error)
	for name, test := range map[string]scene{
		"another machine took over": func(t *testing.T, l *local, r remote.Remote, _ *memory) (*local, remote.Remote, error) {
			a := l.log.Anchor(t, remotetest.Head(t, r))
			a.At = l.log.End
			_, err := r.Begin(ctx, a)
			must(t, err)
			return l, r, new(sender.TakenError)
		},
		"this machine was reset": func(t *testing.T, l *local, r remote.Remote, k *memory) (*local, remote.Remote, error) {
			p := remotetest.NewLog(1).Grow(len(l.log.Pieces), 1)
			back := newLocal(t, crash.New().Process("reset"), 1)
			back.grow(len(p.Pieces) - 4)
			return back, r, new(sender.DivergedError)
		},
		"the folder is older than its log": func(t *testing.T, l *local, r remote.Remote, k *memory) (*local, remote.Remote,
			error) {
			l.repair()
			must(t, start(t, r, l, k).Round(ctx))
			back := newLocal(t, crash.New().Process("older"), 1)
			back.grow(len(l.log.Pieces) + 9)
			return back, r, new(sender.DivergedError)
		},
		"two machines were one": func(t *testing.T, l *local, r remote.Remote, k *memory) (*local, remote.Remote, error) {
			twin := newLocal(t, crash.New().Process("twin"), 1)
			twin.grow(len(l.log.Pieces) - 4)
			twin.log = twin.log.Fork(99)
			twin.grow(8)
			return twin, r, new(sender.DivergedError)
		},
		"the entries are gone": func(t *testing.T, l *local, r remote.Remote, k *memory) (*local, remote.Remote, error) {
			other := place(t, crash.New().Process("other"))
			k.b.Remote = other.ID()
			return l, other, new(sender.LostError)
		},
		"another disk": func(t *testing.T, l *local, r remote.Remote, k *memory) (*local, remote.Remote, error) {
			return l, place(t, crash.New().Process("other")), new(sender.LostError)
		},
	} {
		t.Run(name, func(t *testing.T) {
			process := crash.New().Process("store")
			l, r := newLocal(t, process, 1), place(t, process)
			k := bind(t, r, l)
			s := start(t, r, l, k)
			l.grow(10)
			must(t, s.Round(ctx))
			must(t, s.Maintain(ctx))
			l2, r2, want := test(t, l, r, k)
			before := remotetest.Head(t, r2)
			kept := contents(t, r2)
			bound := k.b
			k.b.Snapshot.Now, k.b.Snapshot.Erase = true, true
			s = start(t, r2, l2, k)
			if err := s.Maintain(ctx); !errors.As(err, reflect.New(reflect.TypeOf(want)).Interface()) {
				t.Fatalf("maintained before a round: %T %v, want %T", err, err, want)
			}
			if now := contents(t, r2); now != kept || l2 != l && l2.taken > 0 {
				t.Fatalf("maintained what another sender means: %s, before: %s", now, kept)
			}
			k.b = bound
			s = start(t, r2, l2, k)
			for range 3 {
				l2.grow(1)
				err := s.Round(ctx)
				if !errors.Is(err, sender.ErrStopped) || fmt.Sprintf("%T", err) != fmt.Sprintf("%T", want) || err.Error() == "" {
					t.Fatalf("%T %v, want %T", err, err, want)
				}
				must(t, s.Maintain(ctx))
			}
			if err := s.Run(ctx); !errors.Is(err, sender.ErrStopped) {
				t.Error(err)
			}
			if h := remotetest.Head(t, r2); h != before {
				t.Errorf("something was sent: %+v", h)
			}
		})
	}
}

// contents describes everything that a remote has.
func contents(t *testing.T, r remote.Remote) string {
	t.Helper()
	epochs, err := r.Epochs(t.Context())
	must(t, err)
	list, err := r.Snapshots(t.Context())
	must(t, err)
	return fmt.Sprintf("%+v %+v", epochs, list)
}

// Another machine takes over while a snapshot is made: the snapshot is dropped, and nothing is removed.
func TestTakenDuringSnapshot(t *testing.T) {
	t.Parallel()
	process := crash.New().Process("store")
	l, r := newLocal(t, process, 1), place(t, process)
	k := bind(t, r, l)
	s := start(t, r, l, k)
	l.grow(10)
	must(t, s.Round(t.Context()))
	must(t, s.Maintain(t.Context()))
	k.b.Snapshot.Now, k.b.Snapshot.Erase = true, true
	s = start(t, r, l, k)
	kept := ""
	l.during = func() {
		a := l.log.Anchor(t, remotetest.Head(t, r))
		a.At = l.log.End
		_, err := r.Begin(t.Context(), a)
		must(t, err)
		kept = contents(t, r)
	}
	var taken *sender.TakenError
	if err := s.Maintain(t.Context()); !errors.As(err, &taken) {
		t.Error(err)
	}
	if now := contents(t, r); now != kept || kept == "" {
		t.Errorf("what another machine means was changed: %s, before: %s", now, kept)
	}
}

// A remote that was reset to an earlier state gets again what it has lost.
func TestRemoteReset(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	disk := crash.New()
	process := disk.Process("remote")
	r := place(t, process)
	l := newLocal(t, crash.New().Process("store"), 1)
	k := bind(t, r, l)
	must(t, start(t, r, l, k).Round(ctx))
	backup := disk.Copy()
	l.grow(10)
	must(t, start(t, r, l, k).Round(ctx))
	r = place(t, backup.Process("remote"))
	l.grow(1)
	must(t, start(t, r, l, k).Round(ctx))
	if h := remotetest.Head(t, r); h.At != l.log.End || h.Epoch != 1 {
		t.Error(h)
	}
	l.compare(r)
}

// A damaged newest entry of the copy begins an epoch.
func TestDamagedCopy(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	process := crash.New().Process("store")
	l, r := newLocal(t, process, 1), place(t, process)
	k := bind(t, r, l)
	s := start(t, r, l, k)
	must(t, s.Round(ctx))
	must(t, s.Maintain(ctx))
	l.grow(3)
	must(t, s.Round(ctx))
	damaged(t, process, r)
	l.grow(1)
	must(t, s.Round(ctx))
	must(t, s.Maintain(ctx))
	h := remotetest.Head(t, r)
	if h.At != l.log.End || h.Epoch < 2 {
		t.Error(h)
	}
	l.restorable(r, h)
}

// Old snapshots and pieces go when two newer snapshots exist and no moment of the last week needs them.
func TestRetention(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	process := crash.New().Process("store")
	l, r := newLocal(t, process, 1), place(t, process)
	s := start(t, r, l, bind(t, r, l))
	for day := range 30 {
		l.grow(20)
		must(t, s.Round(ctx))
		must(t, s.Maintain(ctx))
		must(t, s.Maintain(ctx)) // none is due
		list, err := r.Snapshots(ctx)
		must(t, err)
		if want := min(day+1, 8); len(list) != want {
			t.Fatalf("day %d: %d snapshots, want %d", day, len(list), want)
		}
		if age := l.now.Sub(list[0].Time); day > 7 && age != 7*24*time.Hour {
			t.Fatalf("day %d: the oldest snapshot is %s old", day, age)
		}
		epochs, err := r.Epochs(ctx)
		must(t, err)
		if e := epochs[0]; e.From.LSN > list[0].Begin.LSN || day > 10 && e.From.LSN < list[0].Begin.LSN-(300<<10) {
			t.Fatalf("day %d: pieces from %d, the oldest snapshot needs them from %d", day, e.From.LSN, list[0].Begin.LSN)
		}
		l.restorable(r, remotetest.Head(t, r))
		l.now = l.now.Add(24 * time.Hour)
	}
	// A clock that jumps ahead once does not remove everything.
	l.now = l.now.Add(70 * 365 * 24 * time.Hour)
	must(t, s.Maintain(ctx))
	list, err := r.Snapshots(ctx)
	if err != nil || len(list) != 8 {
		t.Errorf("%d snapshots are left, %v", len(list), err)
	}
	// Nor does it afterwards, when it is right again.
	l.now = l.now.Add(-70*365*24*time.Hour + 24*time.Hour)
	l.grow(20)
	must(t, s.Round(ctx))
	must(t, s.Maintain(ctx))
	if list, err = r.Snapshots(ctx); err != nil || len(list) != 8 {
		t.Errorf("afterwards %d snapshots are left, %v", len(list), err)
	}
	l.restorable(r, remotetest.Head(t, r))
}

// A snapshot that takes long counts for the moments after its end only.
func TestRetentionOfSlowSnapshot(t *testing.T) {
	t.Parallel()
	process := crash.New().Process("store")
	l, r := newLocal(t, process, 1), place(t, process)
	k := bind(t, r, l)
	s := start(t, r, l, k)
	must(t, s.Round(t.Context()))
	l.during = func() { l.now = l.now.Add(5 * time.Hour) }
	begun := l.now
	must(t, s.Maintain(t.Context()))
	list, err := r.Snapshots(t.Context())
	if err != nil || len(list) != 1 || !list[0].Time.Equal(begun.Add(5*time.Hour)) || !k.b.Snapshot.Time.Equal(begun) {
		t.Error(list, err, k.b.Snapshot)
	}
}

// The file of a binding: what is saved is loaded; a file of a newer program, and a damaged one, are refused.
func TestFile(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	path := t.TempDir() + "/state/remotes/x.json"
	k := &sender.File{FS: vfs.OS(), Path: path}
	if _, err := k.Load(ctx); !errors.Is(err, errs.ErrNotFound) {
		t.Error(err)
	}
	b := sender.Binding{Format: 1, Store: uuid.UUID{1}, Remote: uuid.UUID{2}, Machine: uuid.UUID{3}, Epoch: 1<<62 + 1,
		Log: 9, Request: uuid.UUID{4}, Snapshot: sender.Due{Now: true, Erase: true, At: 7, Time: time.Unix(5, 0).UTC()}}
	for range 2 {
		must(t, k.Save(ctx, b))
		if got, err := k.Load(ctx); err != nil || got != b {
			t.Errorf("%+v, %v", got, err)
		}
		b.Epoch++
	}
	st, err := os.Stat(path)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Error(st, err)
	}
	for text, want := range map[string]error{`{"format":2}`: errs.ErrNewerFormat, `{`: errs.ErrCorrupt,
		``: errs.ErrCorrupt, `{"format":1}`: errs.ErrCorrupt} {
		must(t, os.WriteFile(path, []byte(text), 0o600))
		if _, err := k.Load(ctx); !errors.Is(err, want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A place that has a copy already is not bound.
func TestBind(t *testing.T) {
	t.Parallel()
	process := crash.New().Process("store")
	l, r := newLocal(t, process, 1), place(t, process)
	k := bind(t, r, l)
	must(t, start(t, r, l, k).Round(t.Context()))
	if _, err := sender.Bind(t.Context(), r, l.log.Geometry.UUID, &memory{}, nil); !errors.Is(err, remote.ErrMoved) {
		t.Error(err)
	}
	var other *remote.OtherStoreError
	if _, err := sender.Bind(t.Context(), r, uuid.UUID{5}, &memory{}, nil); !errors.As(err, &other) {
		t.Error(err)
	}
	k.b.Store = uuid.UUID{5}
	if _, err := sender.New(t.Context(), r, l, k, options(l)); !errors.As(err, &other) {
		t.Error(err)
	}
}

// damaged damages the newest entry of a remote in a folder.
func damaged(t *testing.T, process vfs.FS, r remote.Remote) {
	t.Helper()
	f, err := process.OpenFile(fmt.Sprintf("/copy/log/%013d/%016d", 0, remotetest.Head(t, r).Number), os.O_RDWR, 0)
	must(t, err)
	_, err = f.WriteAt([]byte("damage"), 30)
	must(t, errors.Join(err, f.Close()))
}

// A damaged newest entry that may be the beginning of another machine's epoch is superseded only if the user decides
// so.
func TestDamagedEntryOfAnother(t *testing.T) {
	t.Parallel()
	process := crash.New().Process("store")
	l, r := newLocal(t, process, 1), place(t, process)
	k := bind(t, r, l)
	s := start(t, r, l, k)
	must(t, s.Round(t.Context()))
	l.grow(3)
	must(t, s.Round(t.Context()))
	a := l.log.Anchor(t, remotetest.Head(t, r))
	a.At = l.log.End
	_, err := r.Begin(t.Context(), a)
	must(t, err)
	number := remotetest.Head(t, r).Number
	damaged(t, process, r)
	l.grow(1)
	unknown := (*sender.DamagedHeadError)(nil)
	if err := s.Round(t.Context()); !errors.As(err, &unknown) || !errors.Is(err, sender.ErrStopped) {
		t.Fatal(err)
	}
	k.b.Follows, k.b.Request = sender.Seen{Number: number}, remotetest.NewID(t)
	s = start(t, r, l, k)
	must(t, s.Round(t.Context()))
	must(t, s.Maintain(t.Context()))
	h := remotetest.Head(t, r)
	if h.At != l.log.End || h.Epoch < 3 || k.b.Follows != (sender.Seen{}) {
		t.Error(h, k.b)
	}
	l.restorable(r, h)
}

// An epoch that supersedes the newest entry as it was looked at is not begun when that entry is no longer the newest.
func TestOvertaken(t *testing.T) {
	t.Parallel()
	process := crash.New().Process("store")
	l, r := newLocal(t, process, 1), place(t, process)
	k := bind(t, r, l)
	s := start(t, r, l, k)
	must(t, s.Round(t.Context()))
	seen := remotetest.Head(t, r)
	taker := &memory{b: k.b}
	taker.b.Follows = sender.Seen{Number: seen.Number, Epoch: seen.Epoch, At: seen.At}
	taker.b.Request = remotetest.NewID(t)
	l.grow(3)
	must(t, s.Round(t.Context()))
	before := contents(t, r)
	var overtaken *sender.OvertakenError
	err := start(t, r, l, taker).Round(t.Context())
	if !errors.As(err, &overtaken) || !errors.Is(err, sender.ErrStopped) {
		t.Fatal(err)
	}
	if now := contents(t, r); now != before {
		t.Fatalf("superseded: %s, before: %s", now, before)
	}
	head := remotetest.Head(t, r)
	taker.b.Follows = sender.Seen{Number: head.Number, Epoch: head.Epoch, At: head.At}
	must(t, start(t, r, l, taker).Round(t.Context()))
	if h := remotetest.Head(t, r); h.Epoch != head.Epoch+1 || taker.b.Follows != (sender.Seen{}) {
		t.Fatal(h, taker.b)
	}
}
