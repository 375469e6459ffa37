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

	"github.com/varve-db/varve/errs"
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
		w.segment(n, 1500)
	}
	return w
}

// segment adds a segment after the end; without an end it begins a log.
func (w *written) segment(n uint64, size int) {
	h := segment.Header{Time: int64(n) * 1e6}
	b := segment.AppendStart(nil, segment.Start{Geometry: geo, Number: n, PrevEnd: w.end.LSN, PrevSum: w.end.Sum}, &h)
	w.borders[h.End()] = h.Sum
	for i := 0; len(b) < int(geo.Size)-8<<10; i++ {
		for j := i % 3; j >= 0; j-- {
			f := segment.Header{Kind: past.KindUser, LSN: geo.Start(n) + uint64(len(b)), Time: h.Time + 1, Previous: h.Sum}
			if j > 0 {
				f.Flags = segment.FlagMore
			}
			b = geo.AppendFrame(b, &f, fmt.Sprintf("m%d", i), bytes.Repeat([]byte{1}, size))
			h, w.frames = f, append(w.frames, f.End())
		}
		w.borders[h.End()] = h.Sum
	}
	w.end = past.Mark{LSN: h.End(), Sum: h.Sum}
	w.segments[n] = append(b, make([]byte, segment.HeaderSize)...)
}

// another begins another log in a segment, as a repair does, without entries if it is empty.
func (w *written) another(n uint64, empty bool) {
	w.end = past.Mark{}
	if !empty {
		w.segment(n, 1400)
		return
	}
	h := segment.Header{Time: int64(n) * 1e6}
	b := segment.AppendStart(nil, segment.Start{Geometry: geo, Number: n}, &h)
	w.segments[n] = append(b, make([]byte, segment.HeaderSize)...)
	w.borders[h.End()], w.end = h.Sum, past.Mark{LSN: h.End(), Sum: h.Sum}
}

// before returns the last end of a batch before a position.
func (w *written) before(at past.LSN) (m past.Mark) {
	for border, sum := range w.borders {
		if border < at && border > m.LSN {
			m = past.Mark{LSN: border, Sum: sum}
		}
	}
	return m
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
func (w *written) check(t testing.TB, p *past.Log, from past.Mark,
	to past.LSN) (gaps []*past.GapError, end past.LSN, bytesRead int) {
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
		if sum,
			ok := w.borders[piece.To.LSN]; !ok || sum != piece.To.Sum || piece.To.LSN != piece.At+uint64(len(piece.Bytes)) {
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

// A limit within a batch omits the batch: whole batches only.
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

// A copy that disappears while pieces are read is a gap that names where the log continues.
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
	if e := geo.EraseIn(b, geo.Start(1), func(_ segment.LSN, key string, _ []byte) bool { return key == "m4" },
		func([]byte) {}); e.Wanted == 0 {
		t.Fatal("nothing erased")
	}
	p := w.put(t, 1)
	if gaps, end, _ := w.check(t, p, past.Mark{LSN: geo.Start(1)}, w.end.LSN); len(gaps) > 0 || end != w.end.LSN {
		t.Fatal(gaps, end)
	}
}

// A torn tail is in no piece: up to a durable position nothing of it is read, and beyond that it is a gap after
// the last whole batch.
func TestPiecesTornTail(t *testing.T) {
	w := write(2)
	last := len(w.frames) - 1
	for w.borders[w.frames[last-1]] != 0 { // the last batch of several frames
		last--
	}
	border := w.before(w.frames[last])
	if border.LSN >= w.frames[last-1] {
		t.Fatal("the batch has one frame")
	}
	for _, torn := range []past.LSN{border.LSN, border.LSN + 8, border.LSN + segment.HeaderSize + 100, w.frames[last-1],
		w.frames[last-1] + 64, w.frames[last] - 64} {
		b := w.segments[2]
		clear(b[geo.Offset(torn):])
		p := w.put(t, 1)
		if gaps, end, _ := w.check(t, p, past.Mark{LSN: geo.Start(1)}, border.LSN); len(gaps) > 0 || end != border.LSN {
			t.Errorf("torn at %d, durable up to %d: read up to %d, %v", torn, border.LSN, end, gaps)
		}
		gaps, end, _ := w.check(t, p, past.Mark{LSN: geo.Start(1)}, w.end.LSN)
		if len(gaps) != 1 || gaps[0].From != border.LSN || end != w.end.LSN || !errors.Is(gaps[0], errs.ErrCorrupt) ||
			errors.Is(gaps[0], past.ErrBegunAgain) {
			t.Errorf("torn at %d: read up to %d, gaps %v", torn, end, gaps)
		}
		w = write(2)
	}
}

// Frames of kind 3, with which a repair has filled a hole, are a gap, even if the copy that has them is
// complete. The gap extends to the next end of a batch: the rest of a batch that began in it is in no piece.
func TestPiecesFilledGap(t *testing.T) {
	for _, frame := range []int{1, 3, 4, 5, 20} { // of batches of one, two and three frames
		w := write(3)
		at := w.frames[frame] - 700
		b := bytes.Clone(w.segments[1])
		b[geo.Offset(at)] ^= 1
		s := past.NewSalvaged(source{bytes.NewReader(b)}, geo)
		end := past.Mark{}
		for m, sum := range w.borders {
			if geo.Number(m) == 1 && m > end.LSN {
				end = past.Mark{LSN: m, Sum: sum}
			}
		}
		if holes, err := s.Patch(t.Context(), 1, past.Mark{}, end); err != nil || len(holes) != 1 {
			t.Fatal(holes, err)
		}
		p := w.put(t, 1)
		out, err := vfs.CreateNew(p.FS, filepath.Join(p.Dir, "new"), 0o600)
		if err == nil {
			err = errors.Join(past.WriteCopy(out, geo, 1, s), out.Close(),
				os.Rename(filepath.Join(p.Dir, "new"), filepath.Join(p.Dir, past.CopyName(1))))
		}
		if err != nil {
			t.Fatal(err)
		}
		gaps, last, _ := w.check(t, p, past.Mark{LSN: geo.Start(1)}, w.end.LSN)
		var hole *errs.GapError
		switch {
		case len(gaps) != 1 || last != w.end.LSN || !errors.As(gaps[0].Err, &hole):
			t.Fatalf("frame %d: read up to %d, gaps %v", frame, last, gaps)
		case gaps[0].From != w.before(w.frames[frame]).LSN && gaps[0].From != w.before(at).LSN ||
			gaps[0].To < w.frames[frame]:
			t.Errorf("frame %d, damaged at %d: gap from %d to %d", frame, at, gaps[0].From, gaps[0].To)
		case w.borders[gaps[0].To] == 0:
			t.Errorf("frame %d: reading continues at %d, within a batch", frame, gaps[0].To)
		}
	}
}

// source is a segment in memory.
type source struct{ *bytes.Reader }

func (source) Name() string { return "memory" }

// A reader of a log after which a repair has begun another one gets the reason, at the position where the other
// one begins: even before that has an entry, and even if the record is missing.
func TestPiecesBegunAgain(t *testing.T) {
	for _, empty := range []bool{false, true} {
		for _, recorded := range []bool{true, false} {
			w := write(2)
			old := w.end
			w.another(4, empty)
			p := w.put(t, 2)
			if recorded {
				broken(t, p, past.Repaired, geo.Start(4))
			}
			for _, from := range []past.Mark{{LSN: geo.Start(1)}, w.before(old.LSN), old} {
				gaps, end, _ := w.check(t, p, from, w.end.LSN)
				if empty && !recorded {
					continue // nothing shows it yet
				}
				var ended *past.EndedError
				if len(gaps) != 1 || gaps[0].From != old.LSN || !errors.As(gaps[0], &ended) ||
					!errors.Is(gaps[0], past.ErrBegunAgain) ||
					end != w.end.LSN {
					t.Fatalf("empty %v, recorded %v, from %d: read up to %d, gaps %v", empty, recorded, from.LSN, end, gaps)
				}
				if recorded && (ended.Reason != past.Repaired || ended.Next != geo.Start(4) || !ended.Time.Equal(moment)) ||
					!recorded && ended.Reason != past.Unknown {
					t.Errorf("recorded %v: %+v", recorded, ended)
				}
			}
			if gaps, end, _ := w.check(t, p, past.Mark{LSN: geo.Start(4) + segment.StartSize},
				w.end.LSN); len(gaps) > 0 || end != w.end.LSN {
				t.Errorf("a reader of the other log: read up to %d, gaps %v", end, gaps)
			}
		}
	}
}

// A restored store has nothing of the log that the reader followed: the gap has the recorded reason, and what
// is missing.
func TestPiecesRestored(t *testing.T) {
	w := write(2)
	old := w.before(w.end.LSN)
	for n := range w.segments {
		delete(w.segments, n)
	}
	w.another(1000, false)
	p := w.put(t, 0)
	broken(t, p, past.Restored, geo.Start(1000))
	gaps, end, _ := w.check(t, p, old, w.end.LSN)
	var ended *past.EndedError
	if len(gaps) != 1 || !errors.As(gaps[0], &ended) || ended.Reason != past.Restored || ended.Next != geo.Start(1000) ||
		!errors.Is(gaps[0], errs.ErrTruncated) || end != w.end.LSN {
		t.Fatalf("read up to %d, gaps %v", end, gaps)
	}
}

// If another log has replaced the one that was followed, the mark shows it: where the other log has a frame
// there, where it has none, and where it ends before.
func TestPiecesOfAnotherLog(t *testing.T) {
	mine := write(2)
	other := &written{segments: map[uint64][]byte{}, borders: map[past.LSN]uint64{}}
	other.segment(1, 1300)
	other.segment(2, 1500)
	p := other.put(t, 1)
	wrong := past.Mark{LSN: other.before(other.end.LSN).LSN, Sum: 1}
	later := past.Mark{LSN: other.end.LSN + 4096, Sum: 1}
	for _, from := range []past.Mark{mine.before(mine.end.LSN), mine.before(geo.End(1)), wrong, later} {
		var err error
		for _, err = range p.Pieces(t.Context(), from, other.end.LSN) {
			break
		}
		var ended *past.EndedError
		if !errors.As(err, &ended) || ended.Reason != past.Unknown || ended.At != from.LSN {
			t.Errorf("from %+v: %v", from, err)
		}
		if err := p.Continues(t.Context(), past.ID{Store: geo.UUID}, from); !errors.As(err, &ended) {
			t.Errorf("continues from %+v: %v", from, err)
		}
	}
	for border, sum := range other.borders {
		if err := p.Continues(t.Context(), past.ID{Store: geo.UUID}, past.Mark{LSN: border, Sum: sum}); err != nil {
			t.Errorf("a mark of the log: %v", err)
		}
	}
	for _, err := range p.Pieces(t.Context(), other.end, other.before(other.end.LSN).LSN) {
		t.Errorf("a mark of the log, beyond the limit: %v", err)
	}
}

// FuzzPieces reads an arbitrary segment whose headers are signed again: reading ends, positions increase, and
// only whole batches of sound frames are yielded.
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

// resign sets the right checksum in headers at their positions.
func resign(b []byte) {
	for off := 0; off+segment.HeaderSize <= len(b); off += 8 {
		if segment.MayBeHeader(b[off:], geo.Start(1)+uint64(off)) {
			sum := xxhash.Sum64(append(binary.LittleEndian.AppendUint64(bytes.Clone(geo.UUID[:]), 1), b[off:off+56]...))
			binary.LittleEndian.PutUint64(b[off+56:], sum)
		}
	}
}
