package wal

// Each of these was a bug, found by reading; the test fails when its fix is taken out.
//
//	go test ./wal -run TestRegress

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/page"
)

func flip(t *testing.T, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := []byte{0}
	if _, err := f.ReadAt(b, at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0x10
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
}

func segPath(dir string, n uint64) string { return filepath.Join(dir, "wal", segment.Name(n)) }

// blocking is a model that answers for mblock only when it is allowed to.
type blocking struct {
	*model
	block chan chan struct{}
}

func (b *blocking) Current(key string) (LSN, error) {
	if key == "mblock" {
		c := make(chan struct{})
		b.block <- c
		<-c
	}
	return b.model.Current(key)
}

// A request is taken by a leader, its ctx ends, and it returns ErrOutcomeUnknown; the leader finds that the
// request does not fit, returns it to the head of the queue and passes it the lead: no goroutine leads ever
// again.
func TestRegressGivenBackRequestTakesTheLeadAway(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := &model{}
	o := m.options(dir)
	block := make(chan chan struct{})
	o.Machine = &blocking{m, block}
	l, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	mustAppend(t, l, put("mfill", strings.Repeat("x", 10<<10)))
	ctx := context.Background()
	held := func(size int) *Batch {
		b := put("mblock", strings.Repeat("y", size))
		b.Preconditions = []Precondition{{Key: "mother"}, {Key: "mblock", LSN: 1}}
		return b
	}
	queued := func(n int) {
		for {
			l.q.mu.Lock()
			k := len(l.q.waiting)
			l.q.mu.Unlock()
			if k == n {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
	done := make(chan error, 3)
	go func() { // r0 is refused in the end, but holds the lead while the others queue
		_, err := l.Append(ctx, held(10))
		done <- err
	}()
	c0 := <-block // r0 has the state lock and the lead
	go func() {
		b := put("m1", strings.Repeat("1", 28<<10))
		b.Preconditions = []Precondition{{Key: "m1"}}
		_, err := l.Append(ctx, b)
		done <- err
	}()
	queued(1)
	b1 := put("mblock", "small")
	b1.Preconditions = []Precondition{{Key: "mblock"}}
	go func() { _, err := l.Append(ctx, b1); done <- err }()
	queued(2)
	ctx2, cancel2 := context.WithCancel(ctx)
	left := make(chan error, 1)
	go func() {
		_, err := l.Append(ctx2, put("m2", strings.Repeat("2", 28<<10)))
		left <- err
	}()
	queued(3)
	close(c0)
	c1 := <-block // the next leader has taken all three, and evaluates the second
	cancel2()
	if err := <-left; !errors.Is(err, errs.ErrOutcomeUnknown) {
		t.Fatalf("m2: %v", err)
	}
	close(c1)
	for range 3 {
		<-done
	}
	short, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if _, err := l.Append(short, put("m3", "v")); err != nil {
		t.Fatalf("nobody leads any more: %v", err)
	}
}

// One flipped bit in the start frame of the only segment: the log is considered missing, a new one with another
// UUID is created, and what was acknowledged is gone.
func TestRegressDamagedStartIsANewLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir)
	mustAppend(t, l, put("m1", "v"))
	mustAppend(t, l, put("m2", "v"))
	l.Close()
	flip(t, segPath(dir, 1), 20)
	c, err := readCheckpoint(l.o.FS, dir)
	if err != nil {
		t.Fatal(err)
	}
	m := &model{}
	o := m.options(dir)
	o.NewAbove, o.UUID = func() (LSN, error) { return c.Attested.LSN, nil }, [16]byte{9}
	l, err = Open(context.Background(), o)
	if err != nil {
		t.Logf("refused: %v", err)
		return
	}
	defer l.Close()
	if r := l.Report(); r.Created || r.Damage == nil && len(m.val) != 2 {
		t.Fatalf("two acknowledged entries are gone without a word: %d keys, created %v, damage %v", len(m.val), r.Created,
			r.Damage)
	}
}

// After a power loss (no shared page): a flipped bit in the start frame of a later segment cuts everything from
// there, although the frames after it attest that it was durable.
func TestRegressDamagedLaterStartIsATornTail(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"flip", "missing"} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			l, _ := open(t, dir)
			const n = 200
			for i := range n {
				mustAppend(t, l, put(fmt.Sprint("m", i), strings.Repeat("v", 1000)))
			}
			l.Close()
			os.Remove(filepath.Join(dir, "wal", "shared"))
			if how == "flip" {
				flip(t, segPath(dir, 3), 20)
			} else {
				os.Remove(segPath(dir, 3))
			}
			l, m := open(t, dir)
			defer l.Close()
			if r := l.Report(); r.Damage == nil && len(m.val) != n {
				t.Fatalf("%d of %d acknowledged entries are left, no damage reported (torn tail %+v)", len(m.val), n, r.TornTail)
			}
		})
	}
}

// Damage that only the shared page attests is forgotten by the second open.
func TestRegressDamageIsForgotten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir)
	mustAppend(t, l, put("m1", "v"))
	at := mustAppend(t, l, put("m2", "v"))
	l.Close()
	flip(t, segPath(dir, 1), l.geo.Offset(at)+66)
	l, _ = open(t, dir)
	if l.Report().Damage == nil {
		t.Fatal("not found at all")
	}
	l.Close()
	l, m := open(t, dir)
	defer l.Close()
	if l.Report().Damage == nil {
		_, err := l.Append(context.Background(), put("m3", "v"))
		t.Fatalf("the second open takes it for a torn tail: %d keys, append says %v", len(m.val), err)
	}
}

// After the cut of an unfinished batch, a precondition on the whole log can never hold: Transact with List runs
// without end.
func TestRegressUnfinishedBatchRefusesTheLogForEver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir)
	mustAppend(t, l, put("m0", "v"))
	b := &Batch{Entries: []Entry{{Key: "m1", Kind: 16, Value: []byte("a")}, {Key: "m2", Kind: 16, Value: []byte("b")}}}
	at := mustAppend(t, l, b)
	l.Close()
	os.Remove(filepath.Join(dir, "wal", "shared"))
	flip(t, segPath(dir, 1), l.geo.Offset(at)+66) // the second half was not written
	l, _ = open(t, dir)
	defer l.Close()
	x := put("m3", "v")
	x.Preconditions = []Precondition{{LSN: l.Applied()}}
	if _, err := l.Append(context.Background(), x); err != nil {
		t.Fatalf("nothing was committed since, and yet: %v", err)
	}
}

// A process loses its place in the log (released meanwhile) and restarts from spilled: a precondition on the
// log does not see what was committed in between.
func TestRegressRestartMissesCommitsForTheLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, _ := open(t, dir)
	defer a.Close()
	mustAppend(t, a, put("m0", "v"))
	listed := a.Applied()
	b, _ := open(t, dir)
	defer b.Close()
	for i := range 200 {
		mustAppend(t, b, put(fmt.Sprint("k", i), strings.Repeat("v", 1000)))
	}
	for range 2 {
		held := mustHold(t, b)
		mk := b.AppliedMark()
		if err := b.SetCheckpoint(held, mk, mk, [Folders]int64{}); err != nil {
			t.Fatal(err)
		}
		if err := b.Archive().Release(t.Context(), held, "index", mk.LSN); err != nil {
			t.Fatal(err)
		}
		held.Unlock()
	}
	a.closeFiles() // the frames of a recycled file no longer verify; a removed file that is still open would hide that
	x := put("m3", "v")
	x.Preconditions = []Precondition{{LSN: listed}}
	var c *ConflictError
	if _, err := a.Append(context.Background(), x); !errors.As(err, &c) {
		t.Fatalf("200 commits since the listing, and the answer is %v", err)
	}
}

// spilled is exactly at the end of a segment: the segment is removed, and with it the last start frame: the
// next open creates a new log.
func TestRegressReleaseTakesTheLastStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir)
	for l.geo.Offset(l.Applied()) < 40<<10 {
		mustAppend(t, l, put("m", strings.Repeat("v", 1000)))
	}
	rest := l.geo.End(1) - l.Applied()
	mustAppend(t, l, put("m", strings.Repeat("v", int(rest)-segment.HeaderSize-1)))
	if l.geo.Offset(l.Applied()) != 0 {
		t.Fatal("not at the end")
	}
	for range 2 {
		held := mustHold(t, l)
		mk := l.AppliedMark()
		if err := l.SetCheckpoint(held, mk, mk, [Folders]int64{}); err != nil {
			t.Fatal(err)
		}
		if err := l.Archive().Release(t.Context(), held, "index", mk.LSN); err != nil {
			t.Fatal(err)
		}
		held.Unlock()
	}
	l.Close()
	m := &model{}
	o := m.options(dir)
	above := l.Applied()
	o.UUID, o.NewAbove = [16]byte{9}, func() (LSN, error) { return above, nil }
	l, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if l.Report().Created {
		t.Fatal("a cleanly closed log was thrown away and a new one made")
	}
}

// The log ends where the checkpoint attests, but files above flushed were being written when the power failed:
// that is not clean.
func TestRegressUnflushedIsNotClean(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir)
	from := l.AppliedMark()
	mustAppend(t, l, put("m", "v"))
	held := mustHold(t, l)
	if err := l.SetCheckpoint(held, from, from, [Folders]int64{}); err != nil { // attests the entry, flushed is below it
		t.Fatal(err)
	}
	held.Unlock()
	l.Close()
	os.Remove(filepath.Join(dir, "wal", "shared"))
	l, _ = open(t, dir)
	defer l.Close()
	if l.Report().Clean || !l.Notes().Distrusted() {
		t.Fatalf("clean %v, distrusted %v, with flushed %d below durable %d", l.Report().Clean,
			l.Notes().Distrusted(), l.Flushed(), l.Durable())
	}
}

// A recovered log whose process is killed before its first flush is trusted by the next open.
func TestRegressDistrustDoesNotSurvive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir)
	mustAppend(t, l, put("m", "v"))
	l.Close()
	os.Remove(filepath.Join(dir, "wal", "shared"))
	l, _ = open(t, dir)
	if !l.Notes().Distrusted() {
		t.Fatal("not even once")
	}
	l.Close() // killed
	l, _ = open(t, dir)
	defer l.Close()
	if !l.Notes().Distrusted() {
		t.Fatal("nothing was flushed since the unclean end, and the files are trusted")
	}
}

// A read-only handle that was opened while there was no shared page never sees later changes.
func TestRegressPrivateReaderNeverFollows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir)
	mustAppend(t, l, put("m1", "v"))
	l.Close()
	os.Remove(filepath.Join(dir, "wal", "shared"))
	ro, m := open(t, dir, func(o *Options) { o.ReadOnly = true })
	defer ro.Close()
	l, _ = open(t, dir)
	defer l.Close()
	mustAppend(t, l, put("m2", "v"))
	if err := ro.CatchUp(context.Background()); err != nil {
		t.Fatal(err)
	}
	if m.val["m2"] == "" {
		t.Fatal("the reader does not see what was committed after a writer had recovered the log")
	}
}

// The heartbeat of another kernel whose clock is slightly ahead.
func TestRegressHeartbeatFromTheFuture(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir)
	mustAppend(t, l, put("m1", "v"))
	l.Close()
	stop := make(chan struct{})
	gone := make(chan struct{})
	beat := func() {
		var b []byte
		b = binary.LittleEndian.AppendUint64(b, 77)
		b = binary.LittleEndian.AppendUint64(b, 78)
		b = binary.LittleEndian.AppendUint64(b, uint64(time.Now().Add(2*time.Second).UnixMicro()))
		b = binary.LittleEndian.AppendUint64(b, xxhash.Sum64(b))
		if err := os.WriteFile(filepath.Join(dir, "wal", "owner"), b, 0o600); err != nil {
			t.Error(err)
		}
	}
	beat()
	go func() {
		defer close(gone)
		for {
			select {
			case <-stop:
				return
			case <-time.After(200 * time.Millisecond):
				beat()
			}
		}
	}()
	m := &model{}
	l, err := Open(context.Background(), m.options(dir))
	close(stop)
	<-gone
	if err == nil {
		l.Close()
		t.Fatal("two kernels have the log open")
	}
}

// TestRegressHeartbeatWhileItIsWritten: the file of the other kernel is found empty or incomplete, at the first
// read or at the second.
func TestRegressHeartbeatWhileItIsWritten(t *testing.T) {
	t.Parallel()
	for _, torn := range []int{0, 1} {
		dir := t.TempDir()
		l, _ := open(t, dir)
		mustAppend(t, l, put("m1", "v"))
		l.Close()
		beats := 0
		write := func(size int) {
			beats++
			b := binary.LittleEndian.AppendUint64(nil, 77)
			b = binary.LittleEndian.AppendUint64(b, 78)
			b = binary.LittleEndian.AppendUint64(b, uint64(time.Now().Add(time.Duration(beats)*time.Second).UnixMicro()))
			b = binary.LittleEndian.AppendUint64(b, xxhash.Sum64(b))
			if err := os.WriteFile(filepath.Join(dir, "wal", "owner"), b[:size], 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write(32 * torn)
		o := (&model{}).options(dir)
		o.Sleep = func(_ context.Context, d time.Duration) error {
			if d == ownerWatch {
				write(31)
			} else {
				write(32)
			}
			return nil
		}
		l, err := Open(context.Background(), o)
		if err == nil {
			l.Close()
			t.Errorf("torn at look %d: two kernels have the log open", torn+1)
		} else if !errors.Is(err, errs.ErrLocked) {
			t.Error(err)
		}
	}
	// Open does not wait for what a crash left.
	dir := t.TempDir()
	l, _ := open(t, dir)
	mustAppend(t, l, put("m1", "v"))
	l.Close()
	if err := os.WriteFile(filepath.Join(dir, "wal", "owner"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	l, _ = open(t, dir)
	if l.Close(); time.Since(began) > ownerWatch {
		t.Errorf("an empty file was waited for: %s", time.Since(began))
	}
}

// As above, but the segment begins with a batch of more than 1 MiB: the search
// for an attesting frame ends before it.
func TestRegressDamagedStartBeforeALargeBatch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	size := func(o *Options) { o.SegmentSize = 8 << 20 }
	l, _ := open(t, dir, size)
	n := 0
	for l.geo.Number(l.Applied()) < 3 {
		mustAppend(t, l, put(fmt.Sprint("m", n), strings.Repeat("v", 3<<20)))
		n++
	}
	for range 10 {
		mustAppend(t, l, put(fmt.Sprint("m", n), "v"))
		n++
	}
	l.Close()
	os.Remove(filepath.Join(dir, "wal", "shared"))
	flip(t, segPath(dir, 3), 20)
	l, m := open(t, dir, size)
	defer l.Close()
	if r := l.Report(); r.Damage == nil && len(m.val) != n {
		t.Fatalf("%d of %d acknowledged entries are left, no damage reported (torn tail %+v)", len(m.val), n, r.TornTail)
	}
}

// failing is a model that fails to apply, once.
type failing struct {
	*model
	failed bool
}

func (f *failing) Apply(entries []Entry) error {
	if !f.failed {
		f.failed = true
		return errors.New("not now")
	}
	return f.model.Apply(entries)
}

// Apply fails once (because an index block cannot be read, for example). The entries that wait to be applied
// again are in the walker's buffer, which is reused.
func TestRegressFailedApplyMixesEntries(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w, _ := open(t, dir)
	defer w.Close()
	m := &model{}
	o := m.options(dir)
	o.Machine = &failing{model: m}
	r, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	mustAppend(t, w, put("ma", "1"))
	mustAppend(t, w, put("mb", "2"))
	if r.CatchUp(context.Background()) == nil {
		t.Fatal("must fail")
	}
	mustAppend(t, w, put("mc", "3"))
	mustAppend(t, w, put("md", "4"))
	if err := r.CatchUp(context.Background()); err != nil {
		t.Fatal(err)
	}
	if m.val["ma"] != "1" || m.val["mb"] != "2" || m.val["mc"] != "3" {
		t.Fatalf("applied %v", m.val)
	}
}

// -race: a read-only handle switches to the shared page while two goroutines use it.
func TestRegressPrivateRace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir)
	mustAppend(t, l, put("m1", "v"))
	l.Close()
	// A page of another boot: it exists and is not valid.
	p, err := l.o.FS.OpenShared(filepath.Join(dir, "wal", "shared"), false, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	page.New(p).SetBoot([2]uint64{1, l.host.Boot[1]})
	p.Close()
	ro, _ := open(t, dir, func(o *Options) { o.ReadOnly = true })
	defer ro.Close()
	l, _ = open(t, dir)
	defer l.Close()
	done := make(chan bool)
	for range 2 {
		go func() {
			for range 100 {
				ro.CatchUp(context.Background())
				ro.Durable()
			}
			done <- true
		}()
	}
	<-done
	<-done
}
