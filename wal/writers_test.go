package wal

import (
	"context"
	"strings"
	"testing"
	"time"
)

// Entries have the number of their batch's writer, otherwise their own number, and their cause, once the log
// has the features; without these they have the bytes that they always had.
func TestWriterOfEntries(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	l, _ := open(t, t.TempDir())
	write := func(writer, own uint32, cause uint8) (e Entry, size uint64) {
		t.Helper()
		b := &Batch{Writer: writer,
			Entries: []Entry{{Key: "mk", Kind: 16, Value: []byte(strings.Repeat("v", 24)), Writer: own, Cause: cause}}}
		if _, err := l.Append(ctx, b); err != nil {
			t.Fatal(err)
		}
		read, err := l.Past().At(ctx, b.Entries[0].LSN, l.Durable())
		if err != nil {
			t.Fatal(err)
		}
		if a := b.Entries[0]; a.Writer != read.Writer || a.Cause != read.Cause {
			t.Errorf("appended as by %d, cause %d, and read as by %d, cause %d", a.Writer, a.Cause, read.Writer, read.Cause)
		}
		return read, read.Size
	}
	e, plain := write(7, 0, CauseExpired)
	if e.Writer != 0 || e.Cause != 0 {
		t.Errorf("without the features: by %d, cause %d", e.Writer, e.Cause)
	}
	if err := l.Raise(ctx, FeatureFields|FeatureWriters); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		writer, own uint32
		cause       uint8
		is          uint32
		most        uint64 // additional bytes
	}{
		{0, 0, 0, 0, 0}, {7, 0, 0, 7, 8}, {7, 3, 0, 7, 8}, {0, 3, CauseUpkeep, 3, 16},
		{1<<32 - 1, 0, CauseEdited, 1<<32 - 1, 16},
		{0, 0, CauseEvicted, 0, 8},
	} {
		e, size := write(c.writer, c.own, c.cause)
		if e.Writer != c.is || e.Cause != c.cause || size-plain > c.most {
			t.Errorf("%+v: by %d, cause %d, %d bytes more", c, e.Writer, e.Cause, size-plain)
		}
	}
	mustClose(t, l)
}

// A clock that shows 0 while frames are ahead of it gives a reading that can be written.
func TestReadingZero(t *testing.T) {
	t.Parallel()
	clock := &set{at: right}
	l, _ := open(t, t.TempDir(), clocked(clock))
	mustAppend(t, l, put("mahead", "1"))
	clock.to(time.UnixMicro(0))
	mustAppend(t, l, put("mzero", "1"))
	list := history(t, l)
	if got := list[len(list)-1].Reading; got.After(time.UnixMicro(1)) {
		t.Errorf("the clock said %s, the entry %s", clock.now(), got)
	}
	mustClose(t, l)
}
