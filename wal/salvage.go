package wal

import (
	"context"
	"errors"
	"fmt"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
)

// A segment with a hole in it cannot be served, but its sound frames are history. SalvageSegment
// writes them into the copy of the segment in the archive, each at its position, and in the place of
// the hole a frame that says from where to where nothing is left, and how the chain continues.
//
// Behind a hole a frame is found by its header: its own checksum, which is seeded with the store and
// the segment, must be right, and it must name the position at which it stands.

// SalvageSegment makes the copy of a segment that cannot be read through, and returns its gaps. end
// is up to where the segment has frames, with the chain hash there if it is known. A copy that is
// there stays.
func (l *FileLog) SalvageSegment(ctx context.Context, number uint64, end Mark) (gaps []Gap, err error) {
	if bytes, _ := l.o.Archive(); bytes <= 0 || l.archived(number) {
		return nil, nil
	}
	f, err := l.openSegment(number)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := &salvaged{source: f, geo: l.geo}
	prev, err := l.endBefore(ctx, number, f)
	if err != nil {
		return nil, err
	}
	if gaps, err = s.patch(ctx, number, prev, end); err != nil || len(gaps) == 0 {
		return gaps, err
	}
	if err = l.putCopy(number, s); err != nil {
		_ = l.letGo(l.o.wal(archiveName(number)) + ".new")
		if !vfs.IsDiskFull(err) {
			return gaps, l.ioError("archiving", l.o.wal(segment.Name(number)), err)
		}
		l.o.Event(Event{Kind: EventArchiveGap, Path: "wal/" + segment.Name(number), Err: err})
	}
	return gaps, nil
}

// endBefore is where the segment before one ends, in its file or its copy, as far as it has frames:
// for one that does not say so itself. Zero when it does, or nothing is known.
func (l *FileLog) endBefore(ctx context.Context, number uint64, f source) (prev Mark, err error) {
	if _, _, err := readStart(f); err == nil || number == 1 {
		return prev, nil
	}
	last := func(m Mark, _ *segment.Header, _ []byte) error { prev = m; return nil }
	before, err := l.openSegment(number - 1)
	if err == nil {
		defer before.Close()
		if _, _, err := readStart(before); err == nil {
			_, err = walkFrames(ctx, l.geo, before, number-1, Mark{}, l.geo.End(number-1), last, func(Gap) {})
			return prev, err
		}
	}
	c, err := openCopy(l.o.FS, l.o.walDir(), number-1)
	if err != nil {
		return Mark{}, nil
	}
	defer c.Close()
	_, err = walkFrames(ctx, l.geo, c, number-1, Mark{}, l.geo.End(number-1), last, func(Gap) {})
	if err != nil && isNoFrame(err) {
		err = nil
	}
	return prev, err
}

// salvaged reads a segment with its holes filled.
type salvaged struct {
	source
	geo     segment.Geometry
	patches []segment.Gap
	size    int64 // behind it nothing is read
	frames  int   // sound entries
}

// ReadAt implements io.ReaderAt.
func (s *salvaged) ReadAt(b []byte, off int64) (int, error) {
	if off >= s.size {
		return 0, nil
	}
	b = b[:min(int64(len(b)), s.size-off)]
	n, err := s.source.ReadAt(b, off)
	for i := range s.patches {
		p := &s.patches[i]
		at := s.geo.Offset(p.At)
		from, to := max(at, off), min(at+int64(p.Len), off+int64(len(b)))
		if from >= to {
			continue
		}
		piece := b[from-off : to-off]
		clear(piece)
		if head := from - at; head < int64(len(p.Bytes)) {
			copy(piece, p.Bytes[head:])
		}
		if n = max(n, int(to-off)); n == len(b) {
			err = nil // what the file lacks at its end is patched
		}
	}
	return n, err
}

// patch finds the holes of a segment and what stands in their place.
func (s *salvaged) patch(ctx context.Context, number uint64, prev, end Mark) (gaps []Gap, err error) {
	var before []Mark // of the gaps: the frame in front of each
	last := Mark{}
	reached, frames := s.geo.Start(number), end.LSN
	_, err = walkFrames(ctx, s.geo, s.source, number, Mark{}, end.LSN, func(m Mark, h *segment.Header, _ []byte) error {
		if last, reached = m, m.LSN; h.Kind >= kindUser {
			s.frames++
		}
		return nil
	}, func(g Gap) {
		if errors.Is(g.Err, segment.ErrEnd) && g.To == end.LSN && end.Sum == 0 {
			frames = g.At // they end here
			return
		}
		if n := len(gaps); n > 0 && gaps[n-1].To == g.At {
			gaps[n-1].To = g.To
		} else {
			gaps, before = append(gaps, g), append(before, last)
		}
		reached = g.To
	})
	if err != nil {
		return nil, err
	}
	s.size, end.LSN = s.geo.Offset(reached-1)+1, frames
	for i := range gaps {
		if err := s.fill(&gaps[i], before[i], prev, end, number); err != nil {
			return nil, err
		}
	}
	return gaps, nil
}

// fill puts frames into a hole.
func (s *salvaged) fill(g *Gap, before, prev, end Mark, number uint64) error {
	at, previous := g.At, before.Sum
	if at == s.geo.Start(number) { // the segment's own start is gone
		h := segment.Header{}
		b := segment.AppendStart(nil, segment.Start{Geometry: s.geo, Number: number, PrevEnd: prev.LSN, PrevSum: prev.Sum}, &h)
		s.patches = append(s.patches, segment.Gap{At: at, Len: uint64(len(b)), Bytes: b})
		at, previous = h.End(), h.Sum
	}
	for g.To < end.LSN && g.To < at+segment.MinGap { // there is no room to say so: the frame behind goes too
		h, err := s.header(g.To)
		if err != nil {
			return err
		}
		g.To = h.End()
	}
	sum := end.Sum
	if g.To < end.LSN {
		h, err := s.header(g.To)
		if err != nil {
			return err
		}
		sum = h.Previous
	}
	if g.To < at+segment.MinGap {
		return nil
	}
	s.patches = append(s.patches, s.geo.Gaps(at, g.To, previous, sum, 0)...)
	return nil
}

// header reads the sound header of a frame.
func (s *salvaged) header(at LSN) (segment.Header, error) {
	var b [segment.HeaderSize]byte
	n, err := readFull(s.source, b[:], s.geo.Offset(at))
	if err != nil {
		return segment.Header{}, err
	}
	h, err := s.geo.ParseHeader(b[:n], at)
	if err != nil {
		return h, fmt.Errorf("the frame behind a hole: %w", err)
	}
	return h, nil
}
