package wal

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// filled is a log that has grown by some segments, a day apart, with the archive's budget.
type filled struct {
	*testing.T
	l      *FileLog
	now    time.Time
	bytes  int64
	age    time.Duration
	random *rand.Rand
	cuts   []Event
	room   int64 // for the files of the archive, 0: any
}

func filledLog(t *testing.T, segments int) *filled {
	t.Helper()
	f := &filled{T: t, now: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), bytes: 1 << 30,
		random: rand.New(rand.NewPCG(1, 2))}
	f.l, _ = open(t, t.TempDir(), func(o *Options) {
		o.Inline, o.Clock = true, func() time.Time { return f.now }
		o.Archive = func() (int64, time.Duration) { return f.bytes, f.age }
		o.FS = wrap.New(vfs.OS(), func(op *wrap.Op, call func() error) error {
			if f.room > 0 && op.Kind == wrap.Write && strings.HasSuffix(op.Path, ".zst.new") {
				if _, total, err := f.l.archiveFiles(); err == nil && total+int64(op.Size) > f.room {
					return syscall.ENOSPC
				}
			}
			return call()
		})
		o.Event = func(e Event) { f.cuts = append(f.cuts, e) }
	})
	t.Cleanup(func() { _ = f.l.Close() })
	for range segments {
		f.segment()
	}
	f.cuts = nil
	return f
}

// segment writes another segment, and releases the previous ones.
func (f *filled) segment() {
	f.Helper()
	f.now = f.now.Add(24 * time.Hour)
	for first := f.l.geo.Number(f.l.Durable() - 1); f.l.geo.Number(f.l.Durable()-1) == first; {
		text := make([]byte, 4000)
		for i := range text {
			text[i] = byte(f.random.IntN(256))
		}
		mustAppend(f.T, f.l, put(fmt.Sprint("k", f.random.IntN(100)), string(text)))
	}
	f.release()
}

func (f *filled) release() {
	f.Helper()
	if err := f.l.CatchUp(context.Background()); err != nil {
		f.Fatal(err)
	}
	let(f.T, f.l)
}

func (f *filled) numbers() (numbers []uint64) {
	f.Helper()
	list, total, err := f.l.archiveFiles()
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range list {
		numbers = append(numbers, c.number)
	}
	if bytes, _ := f.l.Archive().Kept(); bytes != total {
		f.Fatalf("%d bytes are kept, the files have %d", bytes, total)
	}
	return numbers
}

// The budget that is in effect when the log is released applies: copies are removed, oldest first, if they are
// too many or too old, and no others.
func TestArchiveBudget(t *testing.T) {
	t.Parallel()
	f := filledLog(t, 8)
	all := f.numbers()
	if fmt.Sprint(all) != "[1 2 3 4 5 6 7 8]" {
		t.Fatalf("copies %v", all)
	}
	began := func(n uint64) time.Time {
		at, err := f.l.Past().Began(n)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	if _, since := f.l.Archive().Kept(); !since.Equal(began(1)) {
		t.Errorf("kept since %v", since)
	}
	bytes, _ := f.l.Archive().Kept()
	f.bytes = bytes // the present value
	f.release()
	if got := f.numbers(); len(got) != 8 {
		t.Errorf("within the budget %v are left", got)
	}
	f.bytes = bytes * 5 / 8
	f.release()
	if got := f.numbers(); fmt.Sprint(got) != "[4 5 6 7 8]" && fmt.Sprint(got) != "[5 6 7 8]" {
		t.Errorf("of a lower budget %v are left", got)
	}
	first := f.numbers()[0]
	if _, since := f.l.Archive().Kept(); !since.Equal(began(first)) {
		t.Errorf("kept since %v", since)
	}
	// The newest entry of segment 6 is as old as the start of segment 7, at most.
	f.bytes, f.age = 1<<30, f.now.Sub(began(7))
	f.release()
	if got := f.numbers(); fmt.Sprint(got) != "[6 7 8]" {
		t.Errorf("of the last days %v are left, not 6, 7 and 8", got)
	}
	f.age -= time.Microsecond
	f.release()
	if got := f.numbers(); fmt.Sprint(got) != "[7 8]" {
		t.Errorf("of the last days %v are left, not 7 and 8", got)
	}
	f.bytes, f.age = 0, 0
	f.release()
	f.segment()
	if got := f.numbers(); len(got) != 0 {
		t.Errorf("of no budget %v are left", got)
	}
	if bytes, since := f.l.Archive().Kept(); bytes != 0 || since.IsZero() {
		t.Errorf("the log has %d bytes in the archive, since %v", bytes, since)
	}
	var settings []string
	for _, e := range f.cuts {
		if _, by, ok := strings.Cut(e.Note, ", because of "); e.Kind == EventArchiveOld && e.Bytes > 0 && ok {
			settings = append(settings, by)
			continue
		}
		t.Errorf("event %+v", e)
	}
	if got := fmt.Sprint(slices.Compact(settings)); got != "[history_bytes history_days history_bytes]" {
		t.Errorf("removed by %s", got)
	}
}

// Copies are removed by age only according to the time that Options.Aged returns. Its parameter old reports whether a
// copy is too old by the clock.
func TestArchiveAged(t *testing.T) {
	t.Parallel()
	f := filledLog(t, 4)
	var asked []time.Time
	cut := time.Time{}
	f.l.o.Aged = func(now time.Time, old bool) time.Time {
		if old {
			asked = append(asked, now)
		}
		return cut
	}
	f.age = 1000 * 24 * time.Hour
	if f.release(); len(asked) != 0 {
		t.Errorf("asked at %v, and nothing is old", asked)
	}
	right := f.now
	f.now = f.now.Add(10000 * 24 * time.Hour)
	if f.release(); len(asked) == 0 || len(f.numbers()) != 4 {
		t.Errorf("asked at %v; %v are left", asked, f.numbers())
	}
	cut = right
	if f.release(); len(f.numbers()) != 4 {
		t.Errorf("by the time at which nothing was old %v are left", f.numbers())
	}
	cut = f.now
	if f.release(); len(f.numbers()) != 0 {
		t.Errorf("%v are left", f.numbers())
	}
}

// A file in the archive that does not have the name of a copy is left alone.
func TestArchiveForeign(t *testing.T) {
	t.Parallel()
	f := filledLog(t, 2)
	for _, name := range []string{"1.zst", "00000001.zst.bak", "notes.zst", "99999999999999999999.zst"} {
		if err := vfs.WriteDurable(f.l.o.FS, f.l.o.wal("temp"), filepath.Join(f.l.o.walDir(), "archive", name), []byte("x"),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	f.bytes = 0
	f.release()
	if got := f.numbers(); len(got) != 0 {
		t.Errorf("%v are left", got)
	}
	names, err := f.l.o.FS.ReadDir(f.l.o.wal("archive"))
	if err != nil || len(names) != 4 {
		t.Errorf("%v, %v", names, err)
	}
}

// On a full disk the oldest copies are removed for the newest, one after the other, each with an event; only if
// none is left, the new one is not written.
func TestArchiveCut(t *testing.T) {
	t.Parallel()
	f := filledLog(t, 5)
	list, total, err := f.l.archiveFiles()
	if err != nil || len(list) != 5 {
		t.Fatal(list, err)
	}
	var others int // what is removed before the history
	f.l.o.MakeRoom = func() bool { others++; return others < 3 }
	f.room = total + list[0].size/2
	f.segment()
	if got := f.numbers(); fmt.Sprint(got) != "[2 3 4 5 6]" {
		t.Errorf("%v are left", got)
	}
	if others != 3 {
		t.Errorf("asked %d times for other room", others)
	}
	if len(f.cuts) != 1 || f.cuts[0].Kind != EventArchiveCut || f.cuts[0].Path != "wal/archive/00000001.zst" ||
		f.cuts[0].Bytes != list[0].size {
		t.Errorf("events %+v", f.cuts)
	}
	f.cuts, f.room = nil, 1
	f.segment()
	if got := f.numbers(); len(got) != 0 {
		t.Errorf("%v are left", got)
	}
	if len(f.cuts) != 6 || f.cuts[5].Kind != EventArchiveGap || f.cuts[4].Kind != EventArchiveCut ||
		f.cuts[4].Path != "wal/archive/00000006.zst" {
		t.Errorf("events %+v", f.cuts)
	}
}
