package wal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
)

// walker follows the chain of frames. It is the only reader of sequences of
// frames: catching up, scanning and recovery differ in where they stop and in
// what an end means to them.
type walker struct {
	geo    segment.Geometry
	open   func(number uint64) (vfs.File, error)
	past   func(number uint64) (source, error) // instead of open, where segments may be copies
	at     Mark                                // the next frame begins here and links to this sum
	linked bool                                // at.Sum is known; without it the first frame is believed by its own checksum
	ahead  LSN                                 // up to where bytes may be read before they are asked for, if that is beyond the limit

	buf  []byte
	base LSN // position of buf[0]
	have int // valid bytes in buf
}

// source is what a segment's bytes are read from: its file, or its copy in the archive.
type source interface {
	io.ReaderAt
	Name() string
}

func (w *walker) source(number uint64) (source, error) {
	if w.past != nil {
		return w.past(number)
	}
	return w.open(number)
}

// errNoFrame says that no frame of the log stands at a position: the end of the
// log, or damage; the caller knows which.
type errNoFrame struct {
	at   LSN
	here error // what was found at the position
	next error // and at the start of the next segment
}

func (e *errNoFrame) Error() string {
	return fmt.Sprintf("no frame at %d: %v; next segment: %v", e.at, e.here, e.next)
}

func (e *errNoFrame) Unwrap() []error { return []error{e.here, e.next} }

var errOtherLog = errors.New("the segment belongs to another log")

var errUnlinked = errors.New("the frame does not follow the one before it")

const walkChunk = 1 << 20

// next returns the next frame, if it begins before limit. Nothing at or behind limit is
// read, unless ahead allows it. The payload is valid until the following call.
func (w *walker) next(limit LSN) (segment.Header, []byte, error) {
	here := error(segment.ErrEnd)
	if w.geo.Offset(w.at.LSN) != 0 {
		h, payload, err := w.frame(limit)
		if err == nil {
			w.at, w.linked = Mark{h.End(), h.Follow(payload)}, true
			return h, payload, nil
		}
		if !isNoFrame(err) {
			return h, nil, err
		}
		here = err
	}
	h, err := w.roll()
	if err == nil {
		return h, nil, nil
	}
	if !isNoFrame(err) {
		return h, nil, err
	}
	return h, nil, &errNoFrame{at: w.at.LSN, here: here, next: err}
}

func isNoFrame(err error) bool {
	return errors.Is(err, segment.ErrEnd) || errors.Is(err, segment.ErrHeader) ||
		errors.Is(err, segment.ErrPayload) || errors.Is(err, errUnlinked) || errors.Is(err, errNoSegment)
}

func (w *walker) frame(limit LSN) (segment.Header, []byte, error) {
	b, err := w.peek(segment.HeaderSize, limit)
	if err != nil {
		return segment.Header{}, nil, err
	}
	h, err := w.geo.ParseHeader(b, w.at.LSN)
	if err != nil {
		return h, nil, err
	}
	if w.linked && h.Previous != w.at.Sum {
		return h, nil, errUnlinked
	}
	b, err = w.peek(segment.HeaderSize+int(h.Length), limit)
	if err != nil {
		return h, nil, err
	}
	if len(b) < segment.HeaderSize+int(h.Length) {
		return h, nil, segment.ErrPayload
	}
	payload := b[segment.HeaderSize : segment.HeaderSize+int(h.Length)]
	_, _, err = h.Check(payload)
	return h, payload, err
}

// buffered says that the next frame lies whole in the buffer, so that next will
// not use it again.
func (w *walker) buffered() bool {
	at, end := w.at.LSN, w.base+uint64(w.have)
	if at < w.base || at+segment.HeaderSize > end {
		return false
	}
	h, err := w.geo.ParseHeader(w.buf[at-w.base:w.have], at)
	return err == nil && h.End() <= end
}

// peek returns at least n bytes at the current position, fewer only where the
// file, the segment or the limit ends.
func (w *walker) peek(n int, limit LSN) ([]byte, error) {
	if at := w.at.LSN; at >= w.base && at+uint64(n) <= w.base+uint64(w.have) {
		return w.buf[at-w.base : w.have], nil
	}
	f, err := w.source(w.geo.Number(w.at.LSN))
	if err != nil {
		return nil, err
	}
	room := min(max(limit, w.ahead), w.geo.End(w.geo.Number(w.at.LSN))) - w.at.LSN
	want := min(max(uint64(n), walkChunk), room)
	if uint64(cap(w.buf)) < want {
		w.buf = make([]byte, want)
	}
	w.buf = w.buf[:want]
	got, err := readFull(f, w.buf, w.geo.Offset(w.at.LSN))
	if err != nil {
		w.have = 0
		return nil, err
	}
	w.base, w.have = w.at.LSN, got
	return w.buf[:got], nil
}

// roll moves to the next segment if its first frame names exactly this end.
func (w *walker) roll() (segment.Header, error) {
	number := w.geo.Number(w.at.LSN)
	if w.geo.Offset(w.at.LSN) != 0 {
		number++
	}
	s, h, err := w.start(number)
	if err != nil {
		return h, err
	}
	if s.PrevEnd != w.at.LSN || w.linked && s.PrevSum != w.at.Sum {
		return h, fmt.Errorf("segment %d: %w", number, errUnlinked)
	}
	w.at, w.linked = Mark{h.End(), h.Sum}, true
	return h, nil
}

func (w *walker) start(number uint64) (segment.Start, segment.Header, error) {
	f, err := w.source(number)
	if err != nil {
		return segment.Start{}, segment.Header{}, err
	}
	s, h, err := readStart(f)
	if err == nil && (s.Geometry != w.geo || s.Number != number) {
		err = fmt.Errorf("%w: %w: segment %d", segment.ErrHeader, errOtherLog, number)
	}
	return s, h, err
}

func readStart(f source) (segment.Start, segment.Header, error) {
	var b [segment.StartSize]byte
	n, err := readFull(f, b[:], 0)
	if err != nil {
		return segment.Start{}, segment.Header{}, err
	}
	return segment.ParseStart(b[:n])
}

// readFull reads until b is full or the file ends; the end is not an error.
func readFull(f source, b []byte, off int64) (int, error) {
	n := 0
	for n < len(b) {
		m, err := f.ReadAt(b[n:], off+int64(n))
		n += m
		if errors.Is(err, io.EOF) || m == 0 && err == nil {
			return n, nil
		}
		if errors.Is(err, fs.ErrClosed) {
			return n, fmt.Errorf("%s: %w", f.Name(), errNoSegment) // released meanwhile
		}
		if err != nil {
			return n, fmt.Errorf("reading %s at byte %d: %w", f.Name(), off+int64(n), err)
		}
	}
	return n, nil
}
