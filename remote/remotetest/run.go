package remotetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// Run runs the tests of a Remote implementation. The function make creates an empty place, and returns a function that
// opens a Remote at that place; each call opens one more.
func Run(t *testing.T, make func(t *testing.T) (open func() remote.Remote)) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, open func() remote.Remote)
	}{
		{"Empty", testEmpty},
		{"AppendAndRead", testAppendAndRead},
		{"Moved", testMoved},
		{"Invalid", testInvalid},
		{"Again", testAgain},
		{"Compete", testCompete},
		{"Epochs", testEpochs},
		{"OtherStore", testOtherStore},
		{"Prune", testPrune},
		{"Sleeper", testSleeper},
		{"Wait", testWait},
		{"Cancelled", testCancelled},
		{"Snapshots", testSnapshots},
		{"Machines", testMachines},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, make(t)) })
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// begin begins an epoch with the log l after the newest entry of r, and returns the number of the epoch.
func begin(t *testing.T, r remote.Remote, l *Log) uint64 {
	t.Helper()
	epoch, err := r.Begin(t.Context(), l.Anchor(t, Head(t, r)))
	must(t, err)
	return epoch
}

// Append appends pieces to a remote. It fails the test on an error.
func Append(t testing.TB, r remote.Remote, pieces ...remote.Piece) {
	t.Helper()
	for i := range pieces {
		if err := r.Append(t.Context(), &pieces[i]); err != nil {
			t.Fatal(err)
		}
	}
}

// Head returns the position of the newest entry of a remote. It fails the test on an error.
func Head(t testing.TB, r remote.Remote) remote.Position {
	t.Helper()
	h, err := r.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Compare reads an epoch from a position on. It reports a test error unless it gets exactly the wanted pieces.
func Compare(t testing.TB, r remote.Remote, epoch uint64, from segment.LSN, want []remote.Piece) {
	t.Helper()
	i := 0
	for p, err := range r.Read(t.Context(), epoch, from) {
		if err != nil {
			t.Fatalf("epoch %d from %d, piece %d: %v", epoch, from, i, err)
		}
		if i == len(want) {
			t.Fatalf("epoch %d from %d: more than %d pieces", epoch, from, i)
		}
		if w := &want[i]; p.From != w.From || p.To != w.To || p.Epoch != w.Epoch || p.Machine != w.Machine ||
			p.Request != w.Request || p.Format != w.Format || !p.Time.Equal(w.Time) || !bytes.Equal(p.Bytes, w.Bytes) {
			t.Fatalf("epoch %d from %d: piece %d is from %v to %v, want from %v to %v", epoch, from, i, p.From, p.To,
				w.From, w.To)
		}
		i++
	}
	if i != len(want) {
		t.Fatalf("epoch %d from %d: %d pieces, want %d", epoch, from, i, len(want))
	}
}

func wantMoved(t *testing.T, err error, head remote.Position) {
	t.Helper()
	var moved *remote.MovedError
	if !errors.As(err, &moved) || moved.Head.Number != head.Number || moved.Head.At != head.At {
		t.Fatalf("error %v, want a MovedError with the head %+v", err, head)
	}
}

func wantTruncated(t *testing.T, r remote.Remote, epoch uint64, from segment.LSN) {
	t.Helper()
	n := 0
	for p, err := range r.Read(t.Context(), epoch, from) {
		var truncated *remote.TruncatedError
		if n++; !errors.As(err, &truncated) || !errors.Is(err, errs.ErrTruncated) || len(p.Bytes) > 0 {
			t.Fatalf("reading epoch %d from %d: piece from %v, error %v", epoch, from, p.From, err)
		}
	}
	if n != 1 {
		t.Fatalf("reading epoch %d from position %d, which is not kept, returned no error", epoch, from)
	}
}

func testEmpty(t *testing.T, open func() remote.Remote) {
	r := open()
	if h := Head(t, r); h != (remote.Position{}) {
		t.Errorf("the head of an empty remote is not zero: %+v", h)
	}
	l := NewLog(1).Grow(1, 1)
	wantMoved(t, r.Append(t.Context(), &l.Pieces[0]), remote.Position{})
	wantTruncated(t, r, 1, l.Start.LSN)
	if list, err := r.Epochs(t.Context()); err != nil || len(list) > 0 {
		t.Error(list, err)
	}
	if list, err := r.Snapshots(t.Context()); err != nil || len(list) > 0 {
		t.Error(list, err)
	}
	if n, err := r.Prune(t.Context(), 9, 1<<40); err != nil || n > 0 {
		t.Error(n, err)
	}
	if a := open(); a.ID() != r.ID() || a.ID() == uuid.Nil || a.Place() == "" {
		t.Errorf("two handles on one place have different or missing ids, or no place: %s, %s, %q", a.ID(), r.ID(),
			a.Place())
	}
}

func testAppendAndRead(t *testing.T, open func() remote.Remote) {
	r, l := open(), NewLog(1)
	epoch := begin(t, r, l)
	if h := Head(t, r); h.Number == 0 || h.Epoch != epoch || h.At != l.Start || h.Geometry != l.Geometry {
		t.Errorf("wrong head after an anchor: %+v", h)
	}
	Compare(t, r, epoch, l.Start.LSN, nil)
	l.Grow(60, epoch)
	for i := range l.Pieces {
		if err := l.Pieces[i].Check(l.Geometry); err != nil {
			t.Fatal(err)
		}
		Append(t, r, l.Pieces[i])
		for _, handle := range []remote.Remote{r, open()} {
			if h := Head(t, handle); h.At != l.Pieces[i].To || h.Epoch != epoch ||
				h.Request != l.Pieces[i].Request || h.Machine != l.Pieces[i].Machine || !h.Time.Equal(l.Pieces[i].Time) {
				t.Fatalf("wrong head after piece %d: %+v", i, h)
			}
		}
	}
	other := open()
	for i, p := range l.Pieces {
		Compare(t, other, epoch, p.From.LSN, l.Pieces[i:])
		Compare(t, other, epoch, p.From.LSN+8, l.Pieces[i:])
		Compare(t, other, epoch, p.To.LSN-8, l.Pieces[i:])
		Compare(t, other, epoch, p.To.LSN, l.Pieces[i+1:])
	}
	for _, err := range other.Read(t.Context(), epoch, l.Start.LSN) { // a reader that stops
		must(t, err)
		break
	}
}

func testMoved(t *testing.T, open func() remote.Remote) {
	r, l := open(), NewLog(1)
	epoch := begin(t, r, l)
	l.Grow(4, epoch)
	Append(t, r, l.Pieces[:2]...)
	head := Head(t, r)
	wrong := l.Pieces[2]
	for _, change := range []func(p *remote.Piece){
		func(p *remote.Piece) { *p = l.Pieces[3] },
		func(p *remote.Piece) { *p = l.Pieces[0] },
		func(p *remote.Piece) { p.From.Sum++ },
		func(p *remote.Piece) { p.From.LSN += 8 },
		func(p *remote.Piece) { p.Epoch++ },
	} {
		p := wrong
		change(&p)
		wantMoved(t, r.Append(t.Context(), &p), head)
	}
	if h := Head(t, r); h != head {
		t.Errorf("a refused piece changed the head: %+v", h)
	}
	Append(t, r, l.Pieces[2:]...)
	Compare(t, r, epoch, l.Start.LSN, l.Pieces)
}

func testInvalid(t *testing.T, open func() remote.Remote) {
	r, l := open(), NewLog(1)
	epoch := begin(t, r, l)
	l.Grow(1, epoch)
	for i, change := range []func(p *remote.Piece){
		func(p *remote.Piece) { p.Bytes = nil },
		func(p *remote.Piece) { p.To = p.From },
		func(p *remote.Piece) { p.Epoch = 0 },
		func(p *remote.Piece) { p.Time = time.Date(2500, 1, 1, 0, 0, 0, 0, time.UTC) },
		func(p *remote.Piece) { p.Time = time.Date(1960, 1, 1, 0, 0, 0, 0, time.UTC) },
	} {
		p := l.Pieces[0]
		change(&p)
		if err := r.Append(t.Context(), &p); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("invalid piece %d: %v", i, err)
		}
	}
	a := l.Anchor(t, Head(t, r))
	a.At.LSN = 1
	if _, err := r.Begin(t.Context(), a); !errors.Is(err, errs.ErrInvalid) {
		t.Error("invalid anchor:", err)
	}
	Append(t, r, l.Pieces...)
}

// testAgain repeats calls as a caller does that did not get the answer, and checks that each has its effect once.
func testAgain(t *testing.T, open func() remote.Remote) {
	r, l := open(), NewLog(1)
	a := l.Anchor(t, remote.Position{})
	epoch, err := r.Begin(t.Context(), a)
	must(t, err)
	if again, err := open().Begin(t.Context(), a); err != nil || again != epoch {
		t.Fatalf("epoch %d, repeated %d, %v", epoch, again, err)
	}
	l.Grow(3, epoch)
	for i := range l.Pieces {
		Append(t, r, l.Pieces[i])
		Append(t, open(), l.Pieces[i])
		resent := l.Pieces[i]
		resent.Request = NewID(t) // whether a piece was added is decided by its bytes
		Append(t, r, resent)
	}
	Compare(t, r, epoch, l.Start.LSN, l.Pieces)
	wantMoved(t, r.Append(t.Context(), &l.Pieces[1]), Head(t, r))
	if _, err := r.Begin(t.Context(), a); !errors.Is(err, remote.ErrMoved) {
		t.Error("an anchor was repeated after pieces that follow it:", err)
	}
}

// testCompete lets several writers add an entry after the same entry. Exactly one must succeed, and Read must return
// the pieces of the successful calls.
func testCompete(t *testing.T, open func() remote.Remote) {
	r, l := open(), NewLog(1)
	epoch := begin(t, r, l)
	const writers = 6
	handles := [writers]remote.Remote{}
	for i := range handles {
		handles[i] = open()
	}
	for round := range 20 {
		forks, results := [writers]*Log{}, [writers]error{}
		var done sync.WaitGroup
		for i := range writers {
			forks[i] = l.Fork(uint64(100*round+i)).Grow(1, epoch)
			done.Go(func() {
				results[i] = handles[i].Append(t.Context(), &forks[i].Pieces[round])
			})
		}
		done.Wait()
		won := -1
		for i, err := range results {
			switch {
			case err == nil && won >= 0:
				t.Fatalf("round %d: writers %d and %d both succeeded", round, won, i)
			case err == nil:
				won = i
			case !errors.Is(err, remote.ErrMoved):
				t.Fatalf("round %d: writer %d: %v", round, i, err)
			}
		}
		if won < 0 {
			t.Fatalf("round %d: no writer succeeded", round)
		}
		l = forks[won]
		for i := range writers {
			if i != won {
				wantMoved(t, results[i], Head(t, r))
			}
		}
	}
	Compare(t, open(), epoch, l.Start.LSN, l.Pieces)
}

// testEpochs checks that a new epoch ends the one before: from then on its sender is refused, even if its next piece
// begins at the mark at which the new epoch ends.
func testEpochs(t *testing.T, open func() remote.Remote) {
	r := open()
	first := NewLog(1)
	one := begin(t, r, first)
	first.Grow(5, one)
	Append(t, r, first.Pieces[:4]...)
	stale := Head(t, r)
	second := NewLog(2)
	second.Start, second.End = first.Pieces[1].To, first.Pieces[1].To // a rewind
	two := begin(t, r, second)
	if two <= one {
		t.Fatalf("epoch %d after %d", two, one)
	}
	wantMoved(t, r.Append(t.Context(), &first.Pieces[4]), Head(t, r))
	wantMoved(t, r.Append(t.Context(), &first.Pieces[2]), Head(t, r)) // it begins where the new epoch ends
	if _, err := r.Begin(t.Context(), first.Anchor(t, stale)); !errors.Is(err, remote.ErrMoved) {
		t.Error("an epoch was begun after an entry that is not the newest:", err)
	}
	second.Grow(30, two)
	Append(t, r, second.Pieces...)
	Compare(t, r, one, first.Start.LSN, first.Pieces[:4])
	Compare(t, r, one, first.Pieces[2].To.LSN, first.Pieces[3:4])
	Compare(t, r, two, second.Start.LSN, second.Pieces)
	wantTruncated(t, r, two, second.Start.LSN-8)
	wantTruncated(t, r, two+1, second.Start.LSN)
	list, err := r.Epochs(t.Context())
	must(t, err)
	if len(list) != 2 || list[0].Number != one || list[0].From != first.Start || list[0].To != first.Pieces[3].To ||
		list[0].Entries != 5 || list[1].Number != two || list[1].From != second.Start || list[1].To != second.End ||
		list[1].Entries != 31 || list[1].Geometry != second.Geometry {
		t.Errorf("epochs: %+v", list)
	}
}

func testOtherStore(t *testing.T, open func() remote.Remote) {
	r, l := open(), NewLog(1)
	begin(t, r, l)
	other := NewLog(2)
	other.Geometry.UUID = [16]byte{7}
	var refused *remote.OtherStoreError
	_, err := r.Begin(t.Context(), other.Anchor(t, Head(t, r)))
	if !errors.As(err, &refused) || refused.Has != l.Geometry.UUID || refused.Want != other.Geometry.UUID {
		t.Error("beginning the copy of a second store at one place did not fail with OtherStoreError:", err)
	}
	_, err = r.Begin(t.Context(), other.Anchor(t, remote.Position{}))
	if !errors.As(err, &refused) {
		t.Error("beginning the copy of a second store at one place did not fail with OtherStoreError:", err)
	}
}

func testPrune(t *testing.T, open func() remote.Remote) {
	r, l := open(), NewLog(1)
	one := begin(t, r, l)
	l.Grow(20, one)
	Append(t, r, l.Pieces...)
	if n, err := r.Prune(t.Context(), one, l.Start.LSN-8); err != nil || n != 0 {
		t.Error(n, err)
	}
	border := l.Pieces[7].To.LSN
	if n, err := r.Prune(t.Context(), one, border+8); err != nil || n != 9 { // eight pieces and the anchor
		t.Error(n, err)
	}
	for _, handle := range []remote.Remote{r, open()} {
		Compare(t, handle, one, border, l.Pieces[8:])
		Compare(t, handle, one, l.Pieces[11].From.LSN, l.Pieces[11:])
		wantTruncated(t, handle, one, border-8)
		wantTruncated(t, handle, one, l.Start.LSN)
	}
	if n, err := r.Prune(t.Context(), one, l.Start.LSN); err != nil || n != 0 { // a later, lower one
		t.Error(n, err)
	}
	if n, err := r.Prune(t.Context(), one, l.End.LSN); err != nil || n != 11 { // the newest stays
		t.Error(n, err)
	}
	if h := Head(t, open()); h.At != l.End {
		t.Errorf("wrong head after pruning all pieces: %+v", h)
	}
	l.Grow(2, one)
	Append(t, r, l.Pieces[20:]...)
	Compare(t, open(), one, l.Pieces[19].From.LSN, l.Pieces[19:])
	second := NewLog(5)
	two := begin(t, r, second)
	second.Grow(3, two)
	Append(t, r, second.Pieces...)
	if n, err := r.Prune(t.Context(), two, 0); err != nil || n != 3 {
		t.Error(n, err)
	}
	wantTruncated(t, r, one, l.Pieces[20].From.LSN)
	wantTruncated(t, open(), one, l.End.LSN)
	Compare(t, r, two, second.Start.LSN, second.Pieces)
	list, err := r.Epochs(t.Context())
	if err != nil || len(list) != 1 || list[0].Number != two {
		t.Error(list, err)
	}
}

// testSleeper lets a writer sleep after it has read which entry is the newest. Meanwhile others add entries, and prune
// that entry and the ones after it. Then the writer must be refused.
func testSleeper(t *testing.T, open func() remote.Remote) {
	sleeper, awake, l := open(), open(), NewLog(1)
	epoch := begin(t, awake, l)
	l.Grow(1, epoch)
	Append(t, sleeper, l.Pieces[0])
	early := Head(t, sleeper)
	l.Grow(8, epoch)
	late := l.Pieces[1]
	Append(t, awake, l.Pieces[1:]...)
	for _, before := range []segment.LSN{l.Pieces[3].To.LSN, l.End.LSN} {
		_, err := awake.Prune(t.Context(), epoch, before)
		must(t, err)
		head := Head(t, awake)
		wantMoved(t, sleeper.Append(t.Context(), &late), head)
		other := l.Fork(77)
		other.End = late.From
		other.Grow(1, epoch)
		wantMoved(t, sleeper.Append(t.Context(), &other.Pieces[len(other.Pieces)-1]), head)
		if _, err := sleeper.Begin(t.Context(), l.Anchor(t, early)); !errors.Is(err, remote.ErrMoved) {
			t.Error("an epoch was begun after an entry that was pruned:", err)
		}
	}
	last := l.Pieces[len(l.Pieces)-1:]
	Compare(t, open(), epoch, last[0].From.LSN, last)
	Compare(t, sleeper, epoch, last[0].From.LSN, last)
}

func testWait(t *testing.T, open func() remote.Remote) {
	r, l := open(), NewLog(1)
	epoch := begin(t, r, l)
	must(t, r.Wait(t.Context(), 0))
	at := Head(t, r).Number
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	if err := open().Wait(ctx, at); !errors.Is(err, context.DeadlineExceeded) {
		t.Error("waiting for an entry that is never added did not end with the deadline:", err)
	}
	cancel()
	result := make(chan error, 1)
	waiting := open()
	go func() { result <- waiting.Wait(t.Context(), at) }()
	l.Grow(1, epoch)
	Append(t, r, l.Pieces...)
	must(t, <-result)
}

// testCancelled checks that a call with a cancelled context returns the error of the context, and adds nothing.
func testCancelled(t *testing.T, open func() remote.Remote) {
	r, l := open(), NewLog(1)
	epoch := begin(t, r, l)
	l.Grow(4, epoch)
	Append(t, r, l.Pieces[0])
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Head(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := r.Append(ctx, &l.Pieces[1]); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for _, err := range r.Read(ctx, epoch, l.Start.LSN) {
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	canceled := snapshot(t, l, epoch)
	if err := r.Save(ctx, &canceled, bytes.NewReader(nil)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if h := Head(t, r); h.At != l.Pieces[0].To {
		t.Error("a call with a cancelled context added a piece")
	}
	Append(t, r, l.Pieces[1:]...)
	Compare(t, r, epoch, l.Start.LSN, l.Pieces)
}

func snapshot(t *testing.T, l *Log, epoch uint64) remote.Snapshot {
	return remote.Snapshot{ID: NewID(t), Geometry: l.Geometry, Log: 3, Epoch: epoch, Begin: l.Start, End: l.End,
		Machine: uuid.UUID{9}, Format: remote.Format, Time: time.UnixMicro(l.time).UTC()}
}

// readerFunc is an io.Reader without bytes, which calls the function at each Read.
type readerFunc func()

func (f readerFunc) Read([]byte) (int, error) {
	f()
	return 0, io.EOF
}

func testSnapshots(t *testing.T, open func() remote.Remote) {
	r, l := open(), NewLog(1)
	epoch := begin(t, r, l)
	var want []remote.Snapshot
	bodies := map[uuid.UUID][]byte{}
	for _, size := range []int{0, 1, 1 << 20, 3<<20 + 17} {
		l.Grow(1, epoch)
		s := snapshot(t, l, epoch)
		body := bytes.Repeat([]byte(fmt.Sprint(size)), size)
		saved := s
		saved.End, saved.Time = past.Mark{}, time.UnixMicro(1)
		must(t, r.Save(t.Context(), &saved, io.MultiReader(bytes.NewReader(body), readerFunc(func() {
			saved.End, saved.Time = s.End, s.Time // known when the body ends
		}))))
		s.Size, s.SHA256 = int64(len(body)), sha256.Sum256(body)
		if _, ok := r.(interface{ Sealed() bool }); ok { // then they are those of the encrypted bytes
			s.Size, s.SHA256 = saved.Size, saved.SHA256
		}
		if saved != s {
			t.Fatalf("saved %+v, want %+v", saved, s)
		}
		want, bodies[s.ID] = append(want, s), body
	}
	other := open()
	list, err := other.Snapshots(t.Context())
	must(t, err)
	if len(list) != len(want) {
		t.Fatalf("%d snapshots, want %d", len(list), len(want))
	}
	for i := range list {
		if !list[i].Time.Equal(want[i].Time) {
			t.Error(list[i].Time, want[i].Time)
		}
		list[i].Time = want[i].Time
		if list[i] != want[i] {
			t.Errorf("snapshot %d: %+v, want %+v", i, list[i], want[i])
		}
		b, err := other.Open(t.Context(), list[i].ID)
		must(t, err)
		got, err := io.ReadAll(io.NewSectionReader(b, 0, b.Size()))
		if err := errors.Join(err, b.Close()); err != nil || !bytes.Equal(got, bodies[list[i].ID]) {
			t.Errorf("snapshot %d: %d bytes, want %d; %v", i, len(got), len(bodies[list[i].ID]), err)
		}
	}
	lost := snapshot(t, l, epoch)
	for _, broken := range []error{errors.New("the source broke"), io.ErrUnexpectedEOF,
		fmt.Errorf("reading the source: %w", io.EOF)} {
		lost = snapshot(t, l, epoch)
		if err := r.Save(t.Context(), &lost, io.MultiReader(bytes.NewReader(make([]byte, 1<<20+1)),
			iotest.ErrReader(broken))); !errors.Is(err, broken) {
			t.Errorf("saving a snapshot whose source failed with %q returned another error: %v", broken, err)
		}
	}
	invalid := snapshot(t, l, epoch)
	invalid.End = past.Mark{}
	if err := r.Save(t.Context(), &invalid, bytes.NewReader(nil)); !errors.Is(err, errs.ErrInvalid) {
		t.Error("saving an invalid snapshot did not fail with ErrInvalid:", err)
	}
	must(t, other.Drop(t.Context(), want[1].ID))
	must(t, r.Drop(t.Context(), want[1].ID))
	list, err = r.Snapshots(t.Context())
	if err != nil || len(list) != len(want)-1 || list[1].ID != want[2].ID {
		t.Error(list, err)
	}
	for _, id := range []uuid.UUID{lost.ID, want[1].ID} {
		if _, err := r.Open(t.Context(), id); !errors.Is(err, errs.ErrNotFound) {
			t.Error("opened a snapshot that is not there:", err)
		}
	}
}

func testMachines(t *testing.T, open func() remote.Remote) {
	r := open()
	one := remote.Machine{ID: uuid.UUID{1}, Name: "laptop", Seen: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	two := remote.Machine{ID: uuid.UUID{2}, Name: "server \"x\"\n", Seen: one.Seen.Add(time.Hour)}
	must(t, r.Register(t.Context(), two))
	must(t, r.Register(t.Context(), one))
	one.Seen = one.Seen.Add(time.Minute)
	must(t, r.Register(t.Context(), one))
	list, err := open().Machines(t.Context())
	if err != nil || len(list) != 2 || list[0] != one || list[1] != two {
		t.Errorf("machines %+v, %v", list, err)
	}
}
