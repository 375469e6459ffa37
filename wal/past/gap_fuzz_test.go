package past

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
)

// gapped is the beginning of a segment with three entries, the second of which is lost.
func gapped(geo segment.Geometry) []byte {
	h := segment.Header{Time: 1}
	b := segment.AppendStart(nil, segment.Start{Geometry: geo, Number: 1}, &h)
	frame := func(key string) segment.Header {
		f := segment.Header{Kind: KindUser, LSN: geo.Start(1) + uint64(len(b)), Time: h.Time + 1, Previous: h.Sum}
		b = geo.AppendFrame(b, &f, key, []byte("value of "+key))
		return f
	}
	h = frame("ma")
	first := h
	h = frame("mb")
	lost := h
	h = frame("mc")
	for _, g := range geo.Gaps(lost.LSN, lost.End(), first.Sum, lost.Sum, 2) {
		piece := b[geo.Offset(g.At):][:g.Len]
		clear(piece)
		copy(piece, g.Bytes)
	}
	return append(b, make([]byte, segment.HeaderSize)...)
}

// Reading a copy with a gap yields the entries around it, and the gap.
func TestGapped(t *testing.T) {
	geo := segment.Geometry{UUID: [16]byte{1, 2, 3}, Size: segment.MinSize}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, segment.Name(1)), gapped(geo), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &Log{FS: vfs.OS(), Dir: dir, Geometry: geo}
	var got []string
	for e, err := range p.Entries(t.Context(), Mark{LSN: geo.Start(1)}, geo.Start(1)+600) {
		var gap *errs.GapError
		switch {
		case errors.As(err, &gap):
			got = append(got, "gap")
			if _, err := p.At(t.Context(), gap.From, geo.Start(1)+600); !errors.As(err, &gap) {
				t.Errorf("what lies in the gap: %v", err)
			}
		case err != nil && !errors.Is(err, errs.ErrCorrupt) && !errors.Is(err, errs.ErrTruncated):
			t.Fatal(err)
		case err == nil:
			got = append(got, e.Key)
			if at, err := p.At(t.Context(), e.LSN, geo.Start(1)+600); err != nil || at.Key != e.Key {
				t.Errorf("the entry at %d: %q, %v", e.LSN, at.Key, err)
			}
		}
	}
	if len(got) != 3 || got[0] != "ma" || got[1] != "gap" || got[2] != "mc" {
		t.Errorf("the copy has %q", got)
	}
}

// FuzzGapped reads an arbitrary copy in the archive that may have gaps: reading ends, each frame that it yields
// is sound and at its own position, and positions increase.
func FuzzGapped(f *testing.F) {
	geo := segment.Geometry{UUID: [16]byte{1, 2, 3}, Size: segment.MinSize}
	whole := gapped(geo)
	f.Add(whole, uint32(0), uint64(0))
	for at := 0; at < len(whole); at += 24 {
		f.Add(whole, uint32(at), uint64(0xff))
	}
	f.Fuzz(func(t *testing.T, b []byte, at uint32, flip uint64) {
		if len(b) > segment.MinSize {
			t.Skip()
		}
		b = append([]byte(nil), b...)
		for i := range 8 {
			if n := int(at) + i; n < len(b) {
				b[n] ^= byte(flip >> (8 * i))
			}
		}
		resum(geo, b)
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, segment.Name(1)), b, 0o600); err != nil {
			t.Fatal(err)
		}
		p := &Log{FS: vfs.OS(), Dir: dir, Geometry: geo}
		var last LSN
		n := 0
		for e, err := range p.Entries(context.Background(), Mark{LSN: geo.Start(1)}, geo.End(1)) {
			if n++; n > segment.MinSize {
				t.Fatal("it does not end")
			}
			var gap *errs.GapError
			switch {
			case errors.As(err, &gap):
				if gap.From < last || gap.To <= gap.From || gap.To > geo.End(1) {
					t.Fatalf("a gap from %d to %d, behind %d", gap.From, gap.To, last)
				}
				last = gap.To
			case err != nil:
			case e.LSN < last || e.LSN >= geo.End(1):
				t.Fatalf("an entry at %d, behind %d", e.LSN, last)
			default:
				last = e.LSN + 1
			}
		}
	})
}

// resum sets the right checksum in headers at their positions, so that their contents are used.
func resum(geo segment.Geometry, b []byte) {
	for off := 0; off+segment.HeaderSize <= len(b); off += 8 {
		if segment.MayBeHeader(b[off:], geo.Start(1)+uint64(off)) {
			sum := xxhash.Sum64(append(binary.LittleEndian.AppendUint64(append([]byte(nil), geo.UUID[:]...), 1), b[off:off+56]...))
			binary.LittleEndian.PutUint64(b[off+56:], sum)
		}
	}
}
