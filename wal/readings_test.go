package wal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// set is a clock that the test sets.
type set struct {
	mu sync.Mutex
	at time.Time
}

func (s *set) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

func (s *set) to(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = at
}

func clocked(s *set) func(*Options) { return func(o *Options) { o.Clock = s.now } }

var right = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

const decade = 10 * 365 * 24 * time.Hour

// history reads the whole log, by key.
func history(t testing.TB, l *FileLog) (list []Entry) {
	t.Helper()
	for e, err := range l.Past().Entries(context.Background(), Mark{LSN: 0}, l.Durable()) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	return list
}

// After a commit with the clock ahead, later entries have the clock's reading as well as the time of their
// frame, wherever they are read: the times of frames still increase strictly.
func TestReadings(t *testing.T) {
	t.Parallel()
	ctx, dir, clock := context.Background(), t.TempDir(), &set{at: right.Add(decade)}
	l, _ := open(t, dir, clocked(clock))
	mustAppend(t, l, put("mahead", "1"))
	if f := l.Features(); f != 0 {
		t.Fatalf("features %s before any entry needs them", f)
	}
	var at []LSN
	for i := range 10 {
		clock.to(right.Add(time.Duration(i) * time.Minute))
		b := &Batch{Entries: []Entry{{Key: fmt.Sprint("m", i), Kind: 16, Value: []byte("first")},
			{Key: fmt.Sprint("n", i), Kind: 17, Delete: true, Value: []byte("second")}}}
		lsn, err := l.Append(ctx, b)
		if err != nil || !b.Entries[0].Reading.Equal(clock.now()) || !b.Entries[1].Reading.Equal(clock.now()) {
			t.Fatal(b.Entries, err)
		}
		at = append(at, lsn)
	}
	if f := l.Features(); f != FeatureFields {
		t.Fatalf("features %s, want fields", f)
	}
	look := func(l *FileLog) {
		t.Helper()
		list := history(t, l)
		last := time.Time{}
		for i, e := range list {
			want, value := right.Add(decade), "1"
			if i > 0 {
				want, value = right.Add(time.Duration((i-1)/2)*time.Minute), []string{"first", "second"}[(i-1)%2]
			}
			if !e.Time.After(last) || !e.Reading.Equal(want) || string(e.Value) != value {
				t.Errorf("entry %d, %q, of %s, after %s, has reading %s, want %s", i, e.Value, e.Time, last, e.Reading, want)
			}
			last = e.Time
			one, err := l.ReadAt(ctx, e.LSN)
			past, perr := l.Past().At(ctx, e.LSN, l.Durable())
			fast, ferr := l.Reader().At(ctx, e.LSN)
			if errors.Join(err, perr, ferr) != nil || !one.Reading.Equal(want) || !past.Reading.Equal(want) ||
				!fast.Reading.Equal(want) || string(one.Value) != value {
				t.Errorf("entry %d is read as %v, %v and %v: %v", i, one, past, fast, errors.Join(err, perr, ferr))
			}
		}
		if len(list) != 21 {
			t.Fatalf("%d entries", len(list))
		}
		for i := range 10 {
			between := right.Add(time.Duration(i)*time.Minute + time.Second)
			if got, err := l.Past().Until(ctx, Mark{LSN: l.geo.Start(1) + segment.StartSize}, between,
				l.Durable()); err != nil || got != at[i] {
				t.Errorf("the last entry until %s is %d, want %d: %v", between, got, at[i], err)
			}
		}
		// Nothing before the commit that was ahead; after it the entries may have any time.
		if got, err := l.Past().Since(ctx, right.Add(-time.Hour), l.Durable()); err != nil || got != list[0].LSN {
			t.Errorf("since an hour before: %d, want %d, %v", got, list[0].LSN, err)
		}
		if got, err := l.Past().Since(ctx, right.Add(2*decade), l.Durable()); err != nil || got != l.Durable() {
			t.Errorf("since a later time than all: %d, want %d, %v", got, l.Durable(), err)
		}
	}
	look(l)
	mustClose(t, l)
	l, m := open(t, dir, clocked(clock))
	look(l)
	if m.val["m9"] != "first" {
		t.Errorf("replayed as %q", m.val["m9"])
	}
	// Once the clock has caught up, its reading is the time of the frame again.
	clock.to(right.Add(decade + time.Hour))
	b := put("mk", "2")
	mustAppend(t, l, b)
	if e, err := l.ReadAt(ctx, b.Entries[0].LSN); err != nil || !e.Reading.Equal(e.Time) || !e.Time.Equal(clock.now()) {
		t.Errorf("%+v, %v", e, err)
	}
	mustClose(t, l)
}

// A clock that is set back by a second at most, and batches, raise no feature: their frames are as they always
// were.
func TestReadingsOrdinary(t *testing.T) {
	t.Parallel()
	dir, clock := t.TempDir(), &set{at: right}
	l, _ := open(t, dir, clocked(clock))
	mustAppend(t, l, put("mk", "1"))
	clock.to(right.Add(-time.Second + time.Millisecond))
	var b Batch
	for i := range 100 {
		b.Entries = append(b.Entries, Entry{Key: fmt.Sprint("m", i), Kind: 16})
	}
	mustAppend(t, l, &b)
	for _, e := range history(t, l) {
		if !e.Reading.Equal(e.Time) {
			t.Errorf("%s has the reading %s beside %s", e.Key, e.Reading, e.Time)
		}
	}
	if f := l.Features(); f != 0 {
		t.Errorf("features %s", f)
	}
	mustClose(t, l)
}

// Entries that were written before the log had readings, with the clock set back, have the time of their frame.
func TestReadingsOlder(t *testing.T) {
	t.Parallel()
	dir, clock := t.TempDir(), &set{at: right.Add(decade)}
	l, _ := open(t, dir, clocked(clock))
	l.refused.Store(right.UnixMicro()) // as a program that does not write them
	mustAppend(t, l, put("mahead", "1"))
	clock.to(right)
	for i := range 3 {
		mustAppend(t, l, put(fmt.Sprint("m", i), "1"))
	}
	for i, e := range history(t, l) {
		if !e.Reading.Equal(e.Time) || e.Time.Before(right.Add(decade)) {
			t.Errorf("entry %d: %s, reading %s", i, e.Time, e.Reading)
		}
	}
	if f := l.Features(); f != 0 {
		t.Errorf("features %s", f)
	}
	mustClose(t, l)
}

// An older program that has the store open keeps the feature from being raised, but no write fails or even
// waits. Once the older program has ended, readings are written.
func TestReadingsBesideOlder(t *testing.T) {
	t.Parallel()
	dir, clock := t.TempDir(), &set{at: right.Add(decade)}
	l, _ := open(t, dir, clocked(clock))
	mustAppend(t, l, put("mahead", "1"))
	other, _ := open(t, dir, clocked(clock))
	l.shared.Unsay(other.slot) // the process does not record what it knows: it is from before features existed
	clock.to(right)
	began := time.Now()
	b := put("mk", "1")
	mustAppend(t, l, b)
	if took := time.Since(began); took > l.o.LockWait/2 {
		t.Errorf("the write took %s", took)
	}
	if e := b.Entries[0]; !e.Reading.Equal(e.Time) || l.Features() != 0 {
		t.Errorf("reading %s beside %s, features %s", e.Reading, e.Time, l.Features())
	}
	mustClose(t, other)
	clock.to(right.Add(time.Duration(refusedFor) * time.Microsecond))
	b = put("mk", "2")
	mustAppend(t, l, b)
	if e := b.Entries[0]; !e.Reading.Equal(clock.now()) || l.Features() != FeatureFields {
		t.Errorf("reading %s, features %s", e.Reading, l.Features())
	}
	mustClose(t, l)
}

// The holder of flush.lock, and of append.lock, may append: neither waits for itself.
func TestReadingsHeld(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"flush", "exclusive", "both"} {
		ctx, clock := context.Background(), &set{at: right.Add(decade)}
		l, _ := open(t, t.TempDir(), clocked(clock), func(o *Options) { o.LockWait = 10 * time.Second })
		mustAppend(t, l, put("mahead", "1"))
		clock.to(right)
		began := time.Now()
		var held *Held
		var x *Exclusive
		var err error
		if how != "exclusive" {
			if held, err = l.LockFlush(ctx); err != nil {
				t.Fatal(err)
			}
			ctx = held.In(ctx)
		}
		if how != "flush" {
			if x, err = l.Exclusive(ctx); err != nil {
				t.Fatal(err)
			}
			ctx = x.In(ctx)
		}
		b := put("mk", "1")
		if _, err := l.Append(ctx, b); err != nil || !b.Entries[0].Reading.Equal(right) {
			t.Errorf("%s: reading %s, %v", how, b.Entries[0].Reading, err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s: it took %s", how, took)
		}
		if x != nil {
			err = x.Release()
		}
		if held != nil {
			held.Unlock()
		}
		if err != nil {
			t.Error(err)
		}
		mustClose(t, l)
	}
}

// A batch of the maximum size has room for readings, too.
func TestReadingsLargeBatch(t *testing.T) {
	t.Parallel()
	clock := &set{at: right.Add(decade)}
	l, _ := open(t, t.TempDir(), clocked(clock))
	mustAppend(t, l, put("mahead", "1"))
	clock.to(right)
	var b Batch
	for n := uint64(0); ; {
		e := Entry{Key: fmt.Sprintf("m%05d", len(b.Entries)), Kind: 16, Value: []byte("0123456789")} // a field costs 16 bytes
		if n += segment.FrameSize(uint64(len(e.Key) + len(e.Value))); n > l.Limit() {
			break
		}
		b.Entries = append(b.Entries, e)
	}
	for range 3 { // one of them begins a segment
		mustAppend(t, l, &b)
	}
	mustAppend(t, l, &Batch{Entries: []Entry{{Key: "m", Kind: 16, Value: make([]byte, l.Limit()-segment.HeaderSize-8)}}})
	for i, e := range history(t, l)[1:] {
		if !e.Reading.Equal(right) {
			t.Fatalf("entry %d has reading %s", i, e.Reading)
		}
	}
	mustClose(t, l)
}

// Impossible readings are ignored: the time of the frame counts.
func TestReadingsForged(t *testing.T) {
	t.Parallel()
	geo := segment.Geometry{UUID: [16]byte{1}, Size: segment.MinSize}
	frame := right.UnixMicro()
	for _, c := range []struct {
		reading, want int64
	}{
		{frame - 1, frame - 1},
		{frame, frame},
		{frame + 1, frame}, // later than the frame
		{time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro(), frame},
		{time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro(), time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()},
		{time.Date(0, 12, 31, 0, 0, 0, 0, time.UTC).UnixMicro(), frame},
		{-1, -1},
		{-1 << 63, frame}, {1<<63 - 1, frame},
	} {
		h := segment.Header{Kind: 16, LSN: geo.Start(1) + segment.StartSize, Time: frame}
		b := geo.AppendFrameWith(nil, &h, "mk", (&segment.Fields{Reading: c.reading}).AppendTo(nil), []byte("value"))
		key, value, err := h.Check(b[segment.HeaderSize:][:h.Length])
		if err != nil || string(key) != "mk" || string(value) != "value" {
			t.Fatal(key, value, err)
		}
		if e := past.EntryIn(&h, b[segment.HeaderSize:][:h.Length]); e.Reading.UnixMicro() != c.want ||
			e.Time.UnixMicro() != frame {
			t.Errorf("reading %d is %d, want %d", c.reading, e.Reading.UnixMicro(), c.want)
		}
	}
	// Invalid fields: the value is invalid, or they are skipped.
	for fields, value := range map[string]string{
		"": "", "\x00": "", "\xff\xffvalue": "", "\x00\x00value": "value", "\x01\x00\x01value": "value",
		"\x02\x00\x01\x09value": "value", "\x03\x00\x07\x01xvalue": "value", "\x04\x00\x01\x02xxvalue": "value",
	} {
		h := segment.Header{Kind: 16, Flags: segment.FlagFields, LSN: geo.Start(1) + segment.StartSize, Time: frame}
		b := geo.AppendFrame(nil, &h, "mk", []byte(fields))
		if e := past.EntryIn(&h, b[segment.HeaderSize:][:h.Length]); string(e.Value) != value || !e.Reading.Equal(right) {
			t.Errorf("%q: value %q, reading %s", fields, e.Value, e.Reading)
		}
	}
}

// When the commit that was ahead is no longer kept, a time is found by the readings of what is kept, although
// all frames have later times.
func TestReadingsSinceCut(t *testing.T) {
	t.Parallel()
	ctx, clock := context.Background(), &set{at: right.Add(decade)}
	l, _ := open(t, t.TempDir(), clocked(clock))
	mustAppend(t, l, put("mahead", "1"))
	var all []Entry
	for i := range 40 {
		clock.to(right.Add(time.Duration(i) * time.Minute))
		b := put("mk", string(make([]byte, 8<<10)))
		mustAppend(t, l, b)
		all = append(all, b.Entries[0])
	}
	if n := l.geo.Number(l.Durable()); n < 4 {
		t.Fatal("all in one segment", n)
	}
	for n := range uint64(2) {
		if err := os.Remove(l.o.wal(segment.Name(n + 1))); err != nil {
			t.Fatal(err)
		}
	}
	oldest, _, whole, err := l.Past().Oldest(l.Durable())
	if err != nil || whole {
		t.Fatal(err, whole)
	}
	var cut *errs.TruncatedError
	if at, err := l.Past().Since(ctx, right, l.Durable()); !errors.As(err, &cut) || cut.Oldest != oldest {
		t.Errorf("from before what is left: %d, %v", at, err)
	}
	for _, e := range all {
		if e.LSN <= oldest {
			continue
		}
		if at, err := l.Past().Since(ctx, e.Reading, l.Durable()); err != nil || at != e.LSN {
			t.Errorf("since %s: %d, want %d, %v", e.Reading, at, e.LSN, err)
		}
	}
	mustClose(t, l)
}

// Kept returns a reading if the frames are in the future.
func TestReadingsKept(t *testing.T) {
	t.Parallel()
	dir, clock := t.TempDir(), &set{at: right.Add(decade)}
	l, _ := open(t, dir, clocked(clock))
	mustAppend(t, l, put("mahead", "1"))
	clock.to(right)
	for range 12 {
		mustAppend(t, l, put("mk", string(make([]byte, 8<<10))))
	}
	if err := vfs.OS().Remove(l.o.wal(segment.Name(1))); err != nil {
		t.Fatal(err)
	}
	if _, since := l.Archive().Kept(); !since.Equal(right) {
		t.Errorf("kept since %s, want %s", since, right)
	}
	mustClose(t, l)
}
