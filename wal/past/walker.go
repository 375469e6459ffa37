package past

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/varve-db/varve/segment"
)

// Walker reads the frames of a log one after another and verifies their chain. All code that reads sequences of frames
// uses a Walker: catching up, scanning and recovery differ only in where they stop and what they do at the end.
//
// The owner of a Walker may set the exported fields between two calls.
type Walker struct {
	At     Mark // mark at which the next frame begins; the frame must follow its chain hash
	Linked bool // At.Sum is known; otherwise the first frame is verified only by its own checksum
	Ahead  LSN  // position up to which bytes may be read ahead, if that is beyond the limit

	geo  segment.Geometry
	open func(number uint64) (Source, error)

	buf  []byte
	base LSN    // position of the first byte of buf
	have int    // number of valid bytes in buf
	raw  []byte // bytes of the frame that was last returned
}

// NewWalker returns a Walker whose next frame begins at position mark.LSN and must follow the chain hash mark.Sum.
// If mark.Sum is 0, the hash is unknown and not checked. open returns a reader of a segment, which the Walker does
// not close.
func NewWalker(geo segment.Geometry, open func(number uint64) (Source, error), mark Mark) Walker {
	return Walker{geo: geo, open: open, At: mark, Linked: mark.Sum != 0}
}

// OneSegment returns a function for the parameter open of NewWalker. The Walker then reads only one segment, the one
// with the given number, from src. For other segments the function returns an error that matches ErrNoSegment.
func OneSegment(number uint64, src Source) func(uint64) (Source, error) {
	return func(n uint64) (Source, error) {
		if n != number {
			return nil, fmt.Errorf("segment %d: %w", n, ErrNoSegment)
		}
		return src, nil
	}
}

// Reuse makes w use the buffer of old, so that no new one is allocated. old must not be used any more.
func (w *Walker) Reuse(old *Walker) { w.buf = old.buf[:0] }

// Forget drops the bytes that the walker has read ahead.
func (w *Walker) Forget() { w.have = 0 }

// ReadTo returns the position up to which the walker has read bytes.
func (w *Walker) ReadTo() LSN { return w.base + uint64(w.have) }

// Source provides the bytes of a segment: from its file, or from its copy in the archive.
type Source interface {
	io.ReaderAt
	Name() string
}

// NoFrameError means that the log has no valid frame at a position. The caller must determine whether the log ends
// there or is damaged.
type NoFrameError struct {
	At   LSN
	Here error // error found at the position
	Next error // error found at the start of the next segment
}

func (e *NoFrameError) Error() string {
	return fmt.Sprintf("no valid frame of the log at position %d: %v; next segment: %v", e.At, e.Here, e.Next)
}

func (e *NoFrameError) Unwrap() []error { return []error{e.Here, e.Next} }

// ErrNoSegment means that the file of a segment is missing.
var ErrNoSegment = errors.New("no such segment")

var errOtherLog = errors.New("the segment belongs to another log")

// ErrUnlinked means that a frame does not have the checksum of the frame before it, so the two frames do not belong to
// the same chain.
var ErrUnlinked = errors.New("the frame does not continue the chain of the frame before it")

// Chunk is the number of bytes that a Walker reads at once.
const Chunk = 1 << 20

// Next returns the next frame if it begins before limit, and moves the Walker past it. At the end of a segment, the
// next frame is the start frame of the next segment, which Next returns without its payload. Next reads no bytes at or
// after limit, unless Ahead is higher. If there is no valid frame, the error is a *NoFrameError. The payload is valid
// until the next call.
func (w *Walker) Next(limit LSN) (segment.Header, []byte, error) {
	here := error(segment.ErrEnd)
	if w.geo.Offset(w.At.LSN) != 0 {
		h, payload, err := w.Frame(limit)
		if err == nil {
			w.At, w.Linked = Mark{h.End(), h.Follow(payload)}, true
			return h, payload, nil
		}
		if !IsNoFrame(err) {
			return h, nil, err
		}
		here = err
	}
	h, err := w.roll()
	if err == nil {
		return h, nil, nil
	}
	if !IsNoFrame(err) {
		return h, nil, err
	}
	return h, nil, &NoFrameError{At: w.At.LSN, Here: here, Next: err}
}

// IsNoFrame reports whether err means that the log has no valid frame at a position.
func IsNoFrame(err error) bool {
	return errors.Is(err, segment.ErrEnd) || errors.Is(err, segment.ErrHeader) ||
		errors.Is(err, segment.ErrPayload) || errors.Is(err, ErrUnlinked) || errors.Is(err, ErrNoSegment)
}

// Frame returns the frame at the position of the Walker, and does not move the Walker. As Next does, it reads no bytes
// at or after limit, unless Ahead is higher.
func (w *Walker) Frame(limit LSN) (segment.Header, []byte, error) {
	b, err := w.peek(segment.HeaderSize, limit)
	if err != nil {
		return segment.Header{}, nil, err
	}
	h, err := w.geo.ParseHeader(b, w.At.LSN)
	if err != nil {
		return h, nil, err
	}
	if w.Linked && h.Previous != w.At.Sum {
		return h, nil, ErrUnlinked
	}
	b, err = w.peek(segment.HeaderSize+int(h.Length), limit)
	if err != nil {
		return h, nil, err
	}
	if len(b) < segment.HeaderSize+int(h.Length) {
		return h, nil, segment.ErrPayload
	}
	payload := b[segment.HeaderSize : segment.HeaderSize+int(h.Length)]
	w.raw = b[:min(h.Size(), uint64(len(b)))]
	_, _, err = h.Check(payload)
	return h, payload, err
}

// Buffered reports whether the whole next frame is in the buffer. Next then does not read from the file.
func (w *Walker) Buffered() bool {
	at, end := w.At.LSN, w.base+uint64(w.have)
	if at < w.base || at+segment.HeaderSize > end {
		return false
	}
	h, err := w.geo.ParseHeader(w.buf[at-w.base:w.have], at)
	return err == nil && h.End() <= end
}

// peek returns the bytes from the Walker's position on: at least n, or fewer at the end of the file, the segment or the
// limit.
func (w *Walker) peek(n int, limit LSN) ([]byte, error) {
	if at := w.At.LSN; at >= w.base && at+uint64(n) <= w.base+uint64(w.have) {
		return w.buf[at-w.base : w.have], nil
	}
	f, err := w.open(w.geo.Number(w.At.LSN))
	if err != nil {
		return nil, err
	}
	room := min(max(limit, w.Ahead), w.geo.End(w.geo.Number(w.At.LSN))) - w.At.LSN
	want := min(max(uint64(n), Chunk), room)
	if uint64(cap(w.buf)) < want {
		w.buf = make([]byte, want)
	}
	w.buf = w.buf[:want]
	got, err := ReadFull(f, w.buf, w.geo.Offset(w.At.LSN))
	if err != nil {
		w.have = 0
		return nil, err
	}
	w.base, w.have = w.At.LSN, got
	return w.buf[:got], nil
}

// roll moves the Walker to the next segment, past its start frame. The start frame must record the Walker's position
// and chain hash as the end of the previous segment.
func (w *Walker) roll() (segment.Header, error) {
	number := w.geo.Number(w.At.LSN)
	if w.geo.Offset(w.At.LSN) != 0 {
		number++
	}
	s, h, err := w.Start(number)
	if err != nil {
		return h, err
	}
	if s.PrevEnd != w.At.LSN || w.Linked && s.PrevSum != w.At.Sum {
		return h, fmt.Errorf("segment %d: %w", number, ErrUnlinked)
	}
	w.At, w.Linked = Mark{h.End(), h.Sum}, true
	return h, nil
}

// Start returns the first frame of a segment without moving the walker.
func (w *Walker) Start(number uint64) (segment.Start, segment.Header, error) {
	f, err := w.open(number)
	if err != nil {
		return segment.Start{}, segment.Header{}, err
	}
	w.raw = nil
	var b [segment.StartSize]byte
	n, err := ReadFull(f, b[:], 0)
	if err != nil {
		return segment.Start{}, segment.Header{}, err
	}
	s, h, err := segment.ParseStart(b[:n])
	if err == nil && (s.Geometry != w.geo || s.Number != number) {
		err = fmt.Errorf("%w: %w: segment %d", segment.ErrHeader, errOtherLog, number)
	}
	if err == nil {
		w.raw = append([]byte(nil), b[:h.End()-h.LSN]...)
	}
	return s, h, err
}

// ReadStart reads the first frame of a segment.
func ReadStart(f Source) (segment.Start, segment.Header, error) {
	var b [segment.StartSize]byte
	n, err := ReadFull(f, b[:], 0)
	if err != nil {
		return segment.Start{}, segment.Header{}, err
	}
	return segment.ParseStart(b[:n])
}

// ReadFull reads until b is full or the file ends. The end of the file is not an error.
func ReadFull(f Source, b []byte, off int64) (int, error) {
	n := 0
	for n < len(b) {
		m, err := f.ReadAt(b[n:], off+int64(n))
		n += m
		if errors.Is(err, io.EOF) || m == 0 && err == nil {
			return n, nil
		}
		if errors.Is(err, fs.ErrClosed) {
			return n, fmt.Errorf("%s: %w", f.Name(), ErrNoSegment) // released in the meantime
		}
		if err != nil {
			return n, fmt.Errorf("reading %s at byte %d: %w", f.Name(), off+int64(n), err)
		}
	}
	return n, nil
}
