package wal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/fault"
	"github.com/varve-db/varve/internal/vfs/wrap"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

func copyPath(dir string, n uint64) string { return filepath.Join(dir, "wal", past.CopyName(n)) }

// fill appends until the log has reached a segment, and returns what it appended.
func fill(t testing.TB, l *FileLog, until uint64) (list []Entry) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, until))
	for i := 0; l.geo.Number(l.Durable()) < until; i++ {
		n := 1 + r.IntN(3)
		b := &Batch{}
		for j := range n {
			b.Entries = append(b.Entries, Entry{Key: fmt.Sprintf("m%d", r.IntN(50)), Kind: 16,
				Value: fmt.Appendf(nil, "%d.%d.%0*d", i, j, 200+r.IntN(2000), 0)})
		}
		mustAppend(t, l, b)
		list = append(list, b.Entries...)
	}
	return list
}

// let moves spilled up to the end and releases the log twice, so that everything is removed that may be.
func let(t testing.TB, l *FileLog) {
	t.Helper()
	held := mustHold(t, l)
	defer held.Unlock()
	m := l.AppliedMark()
	if err := l.SetCheckpoint(held, m, m, [Folders]int64{}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.Archive().Release(context.Background(), held, "index", m.LSN); err != nil {
			t.Fatal(err)
		}
	}
}

func sameEntries(t testing.TB, l *FileLog, from LSN, want []Entry) {
	t.Helper()
	i := 0
	for e, err := range l.Past().Entries(context.Background(), Mark{LSN: from}, l.Durable()) {
		if err != nil {
			t.Fatalf("entry %d: %v", i, err)
		}
		if i == len(want) {
			t.Fatalf("more than the %d entries that were written", i)
		}
		if w := &want[i]; e.LSN != w.LSN || e.Key != w.Key || string(e.Value) != string(w.Value) || !e.Time.Equal(w.Time) {
			t.Fatalf("entry %d is %d %s, want %d %s", i, e.LSN, e.Key, w.LSN, w.Key)
		}
		i++
	}
	if i != len(want) {
		t.Fatalf("%d entries, want %d", i, len(want))
	}
}

// The past continues across recycled segments, also for a read-only handle.
func TestPastReadsArchiveAndLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir)
	defer l.Close()
	want := fill(t, l, 6)
	let(t, l)
	want = append(want, fill(t, l, 9)...)
	if numbers, _, err := l.Past().Archived(); err != nil || len(numbers) != 5 {
		t.Fatalf("archived: %v, %v", numbers, err)
	}
	ro, _ := open(t, dir, func(o *Options) { o.ReadOnly, o.Create = true, false })
	defer ro.Close()
	for _, h := range []*FileLog{l, ro} {
		sameEntries(t, h, 0, want)
		for _, i := range []int{0, 1, len(want) / 3, len(want) - 1} {
			sameEntries(t, h, want[i].LSN, want[i:])
			e, err := h.Past().At(context.Background(), want[i].LSN, h.Durable())
			if err != nil || e.Key != want[i].Key || string(e.Value) != string(want[i].Value) {
				t.Fatalf("At %d: %+v, %v", want[i].LSN, e.Key, err)
			}
			if _, err := h.Past().At(context.Background(), want[i].LSN+8, h.Durable()); !errors.Is(err, errs.ErrNotFound) {
				t.Fatalf("At where no entry begins: %v", err)
			}
		}
		if oldest, _, whole,
			err := h.Past().Oldest(h.Durable()); err != nil || !whole || oldest != l.geo.Size+segment.StartSize {
			t.Fatalf("oldest %d, %v, %v", oldest, whole, err)
		}
	}
	end := l.AppliedMark()
	if m, err := l.Past().Chain(context.Background(), end.LSN); err != nil || m != end {
		t.Fatalf("chain at the end: %+v, %v, want %+v", m, err, end)
	}
}

// A missing copy is a hole, never the end, and everything after it is there.
func TestPastHole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir)
	defer l.Close()
	want := fill(t, l, 8)
	let(t, l)
	if err := os.Remove(copyPath(dir, 4)); err != nil {
		t.Fatal(err)
	}
	oldest := l.geo.Start(5) + segment.StartSize
	for _, from := range []LSN{want[0].LSN, l.geo.Start(4), l.geo.Start(4) + 8*1000, l.geo.Size} {
		var got []Entry
		var hole *errs.TruncatedError
		for e, err := range l.Past().Entries(context.Background(), Mark{LSN: from}, l.Durable()) {
			if err != nil {
				if hole != nil || !errors.As(err, &hole) || hole.Oldest != oldest {
					t.Fatalf("from %d: %v, oldest is %d", from, err, oldest)
				}
				continue
			}
			if hole == nil && e.LSN > l.geo.Start(4) {
				t.Fatalf("from %d: entry %d before the hole was told", from, e.LSN)
			}
			got = append(got, e)
		}
		if hole == nil {
			t.Fatalf("from %d: the hole was not told", from)
		}
		if from > want[0].LSN {
			continue
		}
		var rest []Entry
		for _, e := range want {
			if l.geo.Number(e.LSN) != 4 {
				rest = append(rest, e)
			}
		}
		if len(got) != len(rest) || got[len(got)-1].LSN != rest[len(rest)-1].LSN {
			t.Fatalf("%d entries around the hole, want %d", len(got), len(rest))
		}
	}
	for i, e := range want {
		if e.LSN >= oldest {
			sameEntries(t, l, 0, want[i:])
			break
		}
	}
	if _, err := l.Past().At(context.Background(), l.geo.Start(4)+4096, l.Durable()); !errors.Is(err, errs.ErrTruncated) {
		t.Fatalf("At in the hole: %v", err)
	}
}

// A flip of any bit of a copy is damage or a hole, and never another entry.
func TestPastDamagedCopy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir)
	defer l.Close()
	want := fill(t, l, 5)
	let(t, l)
	name := copyPath(dir, 2)
	sound, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	known := map[LSN]string{}
	for _, e := range want {
		known[e.LSN] = string(e.Value)
	}
	check := func(what string, b []byte) {
		t.Helper()
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		bad, n := 0, 0
		for e, err := range l.Past().Entries(context.Background(), Mark{LSN: want[0].LSN}, l.Durable()) {
			if err != nil {
				if !errors.Is(err, errs.ErrCorrupt) && !errors.Is(err, errs.ErrTruncated) {
					t.Fatalf("%s: %v", what, err)
				}
				bad++
			} else if known[e.LSN] != string(e.Value) {
				t.Fatalf("%s: entry %d is not what was written", what, e.LSN)
			} else {
				n++
			}
		}
		if bad != 1 && n != len(want) { // a bit that zstd ignores
			t.Fatalf("%s: told %d times", what, bad)
		}
	}
	for i := range len(sound) {
		if i > 64 && i%101 != 0 {
			continue
		}
		b := append([]byte(nil), sound...)
		b[i] ^= 1 << (i % 8)
		check(fmt.Sprint("bit in byte ", i), b)
	}
	for _, n := range []int{0, 1, 23, 24, 39, 40, len(sound) / 2, len(sound) - 1} {
		check(fmt.Sprint("cut at ", n), sound[:n])
	}
	// A damaged live segment is read from its copy.
	if err := os.WriteFile(name, sound, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(segPath(dir, 2), make([]byte, 64<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	sameEntries(t, l, want[0].LSN, want)
}

// Segments are recycled while others read: no reader misses an entry.
func TestPastBesideRelease(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir)
	defer l.Close()
	want := fill(t, l, 4)
	from := want[0].LSN
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				last, n := LSN(0), 0
				for e, err := range l.Past().Entries(context.Background(), Mark{LSN: from}, l.Durable()) {
					if err != nil || e.LSN <= last {
						t.Errorf("after %d entries, at %d: %v", n, e.LSN, err)
						return
					}
					last, n = e.LSN, n+1
				}
				if n < len(want) {
					t.Errorf("%d entries, there were %d", n, len(want))
					return
				}
			}
		})
	}
	for i := range uint64(12) {
		fill(t, l, 5+i)
		let(t, l)
	}
	close(stop)
	wg.Wait()
}

// A copy of an earlier log of the folder does not keep a segment from being archived.
func TestArchiveOfAnotherLife(t *testing.T) {
	t.Parallel()
	old := t.TempDir()
	o, _ := open(t, old, func(o *Options) { o.UUID = [16]byte{9} })
	fill(t, o, 4)
	let(t, o)
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	l, _ := open(t, dir)
	defer l.Close()
	for n := uint64(1); n < 4; n++ {
		b, err := os.ReadFile(copyPath(old, n))
		if err == nil {
			err = os.WriteFile(copyPath(dir, n), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	want := fill(t, l, 5)
	let(t, l)
	sameEntries(t, l, 0, want)
}

// FAILURES 17: what is temporarily unreadable is neither damage nor a hole.
func TestPastPassingErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir)
	defer l.Close()
	want := fill(t, l, 6)
	let(t, l)
	if err := os.Remove(copyPath(dir, 3)); err != nil {
		t.Fatal(err)
	}
	for n, fired := 1, true; fired; n++ {
		fired = false
		left := n
		p := l.Past()
		p.FS = fault.New(vfs.OS(), func(op *fault.Op) error {
			if op.Kind == wrap.Open || op.Kind == wrap.Read {
				if left--; left == 0 {
					fired = true
					return syscall.EMFILE
				}
			}
			return nil
		})
		told := false
		holes := 0
		for _, err := range p.Entries(context.Background(), Mark{LSN: want[0].LSN}, l.Durable()) {
			switch {
			case err == nil:
			case errors.Is(err, syscall.EMFILE):
				told = true
			case errors.Is(err, errs.ErrTruncated):
				holes++
			default:
				t.Fatalf("operation %d: %v", n, err)
			}
		}
		if told != fired || holes > 1 || !fired && holes != 1 {
			t.Fatalf("operation %d: told %v, %d holes", n, told, holes)

		}
	}
}

// The copy of a segment was looked for before it was written; the file, which was looked for next, is recycled
// before it is read.
func TestPastBetweenTwoLooks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir)
	defer l.Close()
	want := fill(t, l, 2)
	for i := range 5 {
		b := &Batch{Entries: []Entry{{Key: fmt.Sprint("k", i), Kind: 16, Value: []byte("v")}}}
		mustAppend(t, l, b)
		want = append(want, b.Entries...)
	}
	past, to, recycled, copied := l.Past(), l.Durable(), uint64(0), false
	past.FS = fault.New(past.FS, func(op *fault.Op) error {
		copied = copied || op.Path == copyPath(dir, 1)
		number := recycled + 1
		if number < 3 && copied == (number == 2) && op.Kind == wrap.Read && filepath.Base(op.Path) == segment.Name(number) {
			recycled = number
			let(t, l)
			fill(t, l, 3*number+1) // reuses what was released
		}
		return nil
	})
	n := 0
	for e, err := range past.Entries(context.Background(), Mark{LSN: want[0].LSN}, to) {
		if err != nil {
			t.Fatalf("after %d entries: %v", n, err)
		}
		if n == len(want) || e.LSN != want[n].LSN {
			t.Fatalf("entry %d is at %d", n, e.LSN)
		}
		n++
	}
	if n != len(want) || recycled != 2 {
		t.Fatalf("%d of %d entries, %d segments recycled", n, len(want), recycled)
	}
}
