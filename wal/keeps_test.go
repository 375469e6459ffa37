package wal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// The notes about a copy in the archive belong to that file only: not to one that has replaced it, such as one
// with a gap that a repair wrote, and not to one that is gone.
func TestNotesOfCopies(t *testing.T) {
	t.Parallel()
	l, name, plain := archivedCopy(t)
	var at []LSN
	for off := uint64(0); ; {
		h, err := l.geo.ParseHeader(plain[off:], l.geo.Start(1)+off)
		if err != nil {
			break
		}
		if h.Kind >= past.KindUser {
			at = append(at, h.LSN)
		}
		off += h.End() - h.LSN
	}
	if len(at) != 3 {
		t.Fatalf("%d entries", len(at))
	}
	keys := []string{"malpha", "mbeta", "mgamma"}
	noted := func(want ...bool) {
		t.Helper()
		for i, key := range keys {
			if got := l.notedIn(key, at[i]); got != want[i] {
				t.Errorf("%s: noted %v", key, got)
			}
			if l.notedIn("m"+key, at[i]) || l.notedIn(key, at[i]+8) {
				t.Errorf("noted what is not there, at %s", key)
			}
		}
	}
	look := func() {
		t.Helper()
		c, err := past.OpenCopy(l.o.FS, l.o.walDir(), 1)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for range l.geo.Size/past.BlockSize + 1 {
			l.lookedInto(1, c, past.BlockSize)
		}
	}
	noted(false, false, false)
	look()
	noted(true, true, true)
	noted(true, true, true)
	// The copy is replaced by one without the second.
	gap := plain[at[1]-l.geo.Start(1) : at[2]-l.geo.Start(1)]
	first, err := l.geo.ParseHeader(plain[at[0]-l.geo.Start(1):], at[0])
	if err != nil {
		t.Fatal(err)
	}
	sum := first.Follow(plain[at[0]-l.geo.Start(1)+segment.HeaderSize:][:first.Length])
	second, err := l.geo.ParseHeader(gap, at[1])
	if err != nil {
		t.Fatal(err)
	}
	after := second.Follow(gap[segment.HeaderSize:][:second.Length])
	for _, g := range l.geo.Gaps(at[1], at[2], sum, after, second.Time) {
		piece := plain[g.At-l.geo.Start(1):][:g.Len]
		clear(piece)
		copy(piece, g.Bytes)
	}
	if err := l.writeCopy(name+".new", 1, &named{strings.NewReader(string(plain)), name}); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
	noted(false, false, false)
	look()
	noted(true, false, true)
	if err := os.Remove(filepath.Clean(name)); err != nil {
		t.Fatal(err)
	}
	noted(false, false, false)
	if n := l.copies.frames; n != 0 {
		t.Errorf("%d frames are noted of no copy", n)
	}
}

type named struct {
	*strings.Reader
	name string
}

func (n *named) Name() string { return n.name }

// A hole that begins in the payload of one entry and extends to the last one is no reason to drop what was
// before it (found by TestSimPastRepaired, seed 127).
func TestSalvageBeforeTheEnd(t *testing.T) {
	t.Parallel()
	l, name, plain := archivedCopy(t)
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	var at []uint64
	off := uint64(0)
	for {
		h, err := l.geo.ParseHeader(plain[off:], l.geo.Start(1)+off)
		if err != nil {
			break
		}
		at = append(at, off)
		off += h.End() - h.LSN
	}
	f, err := os.OpenFile(l.o.wal(segment.Name(1)), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	hole := at[len(at)-2] + segment.HeaderSize
	if _, err := f.WriteAt(make([]byte, off-hole), int64(hole)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	gaps, err := l.Archive().Salvage(t.Context(), 1, Mark{LSN: l.geo.Start(1) + off})
	if err != nil || len(gaps) != 1 {
		t.Fatalf("%v, %v", gaps, err)
	}
	c, err := past.OpenCopy(l.o.FS, l.o.walDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if n := len(l.framesIn(1, c)); n != 1 {
		t.Errorf("%d entries are kept", n)
	}
}
