package past_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

var geo = segment.Geometry{UUID: [16]byte{1, 2, 3}, Size: segment.MinSize}

// written is a log of segments with batches of one to three entries, its end, and where batches end.
type written struct {
	segments map[uint64][]byte
	end      past.Mark
	borders  map[past.LSN]uint64
	frames   []past.LSN // where frames end
}

func write(last uint64) *written {
	w := &written{segments: map[uint64][]byte{}, borders: map[past.LSN]uint64{}}
	for n := uint64(1); n <= last; n++ {
		h := segment.Header{Time: int64(n) * 1e6}
		b := segment.AppendStart(nil, segment.Start{Geometry: geo, Number: n, PrevEnd: w.end.LSN, PrevSum: w.end.Sum}, &h)
		w.borders[h.End()] = h.Sum
		for i := 0; len(b) < int(geo.Size)-8<<10; i++ {
			for j := i % 3; j >= 0; j-- {
				f := segment.Header{Kind: past.KindUser, LSN: geo.Start(n) + uint64(len(b)), Time: h.Time + 1, Previous: h.Sum}
				if j > 0 {
					f.Flags = segment.FlagMore
				}
				b = geo.AppendFrame(b, &f, fmt.Sprintf("m%d", i), make([]byte, 1500))
				h, w.frames = f, append(w.frames, f.End())
			}
			w.borders[h.End()] = h.Sum
		}
		w.end = past.Mark{LSN: h.End(), Sum: h.Sum}
		w.segments[n] = append(b, make([]byte, segment.HeaderSize)...)
	}
	return w
}

func (w *written) put(t testing.TB, archived uint64) *past.Log {
	t.Helper()
	dir := t.TempDir()
	p := &past.Log{FS: vfs.OS(), Dir: dir, Geometry: geo}
	if err := os.Mkdir(filepath.Join(dir, "archive"), 0o700); err != nil {
		t.Fatal(err)
	}
	for n, b := range w.segments {
		name := filepath.Join(dir, segment.Name(n))
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if n > archived {
			continue
		}
		in, err := p.FS.OpenFile(name, os.O_RDONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		out, err := vfs.CreateNew(p.FS, filepath.Join(dir, past.CopyName(n)), 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(past.WriteCopy(out, geo, n, in), out.Close(), in.Close(), os.Remove(name)); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// check reads the pieces and compares each with the bytes of the log and its borders.
func (w *written) check(t testing.TB, p *past.Log, from past.Mark, to past.LSN) (gaps []*past.GapError, end past.LSN, bytesRead int) {
	t.Helper()
	at := from.LSN
	for piece, err := range p.Pieces(context.Background(), from, to) {
		var gap *past.GapError
		if errors.As(err, &gap) {
			if gap.From != at || gap.To <= gap.From {
				t.Fatalf("gap from %d to %d, behind %d", gap.From, gap.To, at)
			}
			gaps, at = append(gaps, gap), gap.To
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		want := w.segments[geo.Number(piece.At)][geo.Offset(piece.At):][:len(piece.Bytes)]
		if piece.From.LSN != at || !bytes.Equal(piece.Bytes, want) {
			t.Fatalf("piece at %d from %d, behind %d", piece.At, piece.From.LSN, at)
		}
		if sum, ok := w.borders[piece.To.LSN]; !ok || sum != piece.To.Sum || piece.To.LSN != piece.At+uint64(len(piece.Bytes)) {
			t.Fatalf("piece at %d ends at %d, where no batch does", piece.At, piece.To.LSN)
		}
		at, bytesRead = piece.To.LSN, bytesRead+len(piece.Bytes)
	}
	return gaps, at, bytesRead
}

// The pieces are the log byte for byte, from segments and from copies, and a reader that begins again
// where a piece ended misses nothing.
func TestPieces(t *testing.T) {
	w := write(5)
	p := w.put(t, 3)
	gaps, end, n := w.check(t, p, past.Mark{LSN: geo.Start(1)}, w.end.LSN)
	if len(gaps) > 0 || end != w.end.LSN || n == 0 {
		t.Fatal(gaps, end, w.end.LSN)
	}
	for border, sum := range w.borders {
		if gaps, end, _ := w.check(t, p, past.Mark{LSN: border, Sum: sum}, w.end.LSN); len(gaps) > 0 || end != w.end.LSN {
			t.Fatal(border, gaps, end)
		}
	}
	if gaps, _, _ := w.check(t, p, past.Mark{LSN: w.end.LSN - 8, Sum: 1}, w.end.LSN); len(gaps) != 1 {
		t.Error("a position that is not in the log is no gap:", gaps)
	}
}

// A limit within a batch leaves the batch out: whole batches only.
func TestPiecesWholeBatches(t *testing.T) {
	w := write(1)
	p := w.put(t, 0)
	for _, to := range w.frames {
		last := past.LSN(0)
		for border := range w.borders {
			if border <= to {
				last = max(last, border)
			}
		}
		if gaps, end, _ := w.check(t, p, past.Mark{LSN: geo.Start(1)}, to); len(gaps) > 0 || end != last {
			t.Fatalf("up to %d: ends at %d, want %d; %v", to, end, last, gaps)
		}
	}
}

// A copy that vanishes while pieces are read is a gap that names where the log continues.
func TestPiecesVanished(t *testing.T) {
	w := write(5)
	p := w.put(t, 4)
	at, found := geo.Start(1), false
	for piece, err := range p.Pieces(t.Context(), past.Mark{LSN: at}, w.end.LSN) {
		var gap *past.GapError
		switch {
		case errors.As(err, &gap):
			if found = true; gap.From != at || geo.Number(gap.To) != 4 {
				t.Fatal(gap)
			}
			at = gap.To
		case err != nil:
			t.Fatal(err)
		case piece.From.LSN != at:
			t.Fatal(piece.From, at)
		default:
			at = piece.To.LSN
			for _, n := range []uint64{2, 3} {
				_ = os.Remove(filepath.Join(p.Dir, past.CopyName(n)))
			}
		}
	}
	if !found || at != w.end.LSN {
		t.Error(found, at)
	}
}

// Erased frames are in the pieces as they are.
func TestPiecesErased(t *testing.T) {
	w := write(2)
	b := w.segments[1]
	if e := geo.EraseIn(b, geo.Start(1), func(key string, _ []byte) bool { return key == "m4" }, func([]byte) {}); e.Wanted == 0 {
		t.Fatal("nothing erased")
	}
	p := w.put(t, 1)
	if gaps, end, _ := w.check(t, p, past.Mark{LSN: geo.Start(1)}, w.end.LSN); len(gaps) > 0 || end != w.end.LSN {
		t.Fatal(gaps, end)
	}
}

// FuzzPieces reads a segment that is anything, its headers signed again: reading ends, positions go up,
// and what is yielded is whole batches of sound frames.
func FuzzPieces(f *testing.F) {
	w := write(1)
	for at := uint32(0); at < 8192; at += 200 {
		f.Add(at, uint64(0xff))
	}
	f.Fuzz(func(t *testing.T, at uint32, flip uint64) {
		b := bytes.Clone(w.segments[1])
		for i := range 8 {
			if n := int(at) + i; n < len(b) {
				b[n] ^= byte(flip >> (8 * i))
			}
		}
		resign(b)
		p := (&written{segments: map[uint64][]byte{1: b}}).put(t, 0)
		last := geo.Start(1)
		for piece, err := range p.Pieces(t.Context(), past.Mark{LSN: last}, w.end.LSN) {
			var gap *past.GapError
			switch {
			case errors.As(err, &gap):
				if gap.From < last || gap.To < gap.From {
					t.Fatal(gap, last)
				}
				last = gap.To
			case err != nil:
				return
			case piece.At < last || !bytes.Equal(piece.Bytes, b[geo.Offset(piece.At):][:len(piece.Bytes)]):
				t.Fatal(piece.At, last)
			default:
				last = piece.To.LSN
			}
		}
	})
}

// resign gives headers at their positions the right checksum.
func resign(b []byte) {
	for off := 0; off+segment.HeaderSize <= len(b); off += 8 {
		if segment.MayBeHeader(b[off:], geo.Start(1)+uint64(off)) {
			sum := xxhash.Sum64(append(binary.LittleEndian.AppendUint64(bytes.Clone(geo.UUID[:]), 1), b[off:off+56]...))
			binary.LittleEndian.PutUint64(b[off+56:], sum)
		}
	}
}
