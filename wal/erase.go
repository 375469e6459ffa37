package wal

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

var errNotThrough = errors.New("the readable part of the copy ends too early")

// erased reads the archived copy of a segment into memory, erases the frames for which match returns true, and
// clears everything after the last frame. It returns the result, which is in b if b is large enough. frames is the
// number of erased frames. changed reports whether the result differs from the copy.
func (l *FileLog) erased(number uint64, b []byte,
	match func(at LSN, key string, value []byte) bool) (frames int, changed bool, _ []byte, err error) {
	c, err := past.OpenCopy(l.o.FS, l.o.walDir(), number)
	if err != nil {
		return 0, false, b, err
	}
	defer c.Close()
	start, _, err := past.ReadStart(c)
	if err != nil {
		return 0, false, b, err
	}
	if uint64(cap(b)) < start.Size {
		b = make([]byte, start.Size)
	}
	n, err := c.Inflate(b[:start.Size])
	if err != nil {
		return 0, false, b, err
	}
	b = b[:n]
	frames, at, here := eraseFrames(start.Geometry, number, b, match)
	if err := l.through(number, start.Geometry, at, here); err != nil {
		return 0, false, b, err
	}
	tail := b[min(int64(at-start.Geometry.Start(number)), int64(len(b))):]
	changed = frames > 0 || c.Longer() || slices.ContainsFunc(tail, func(c byte) bool { return c != 0 })
	clear(tail)
	return frames, changed, b, nil
}

// eraseFrames erases the frames for which match returns true in b, the content of a segment. It returns the number of
// erased frames, and end, the position at which the readable frames end. The result here is the error that was found
// at end; it is never nil.
func eraseFrames(geo segment.Geometry, number uint64, b []byte,
	match func(at LSN, key string, value []byte) bool) (frames int, end LSN, here error) {
	for end = geo.Start(number); ; {
		rest := b[geo.Offset(end):]
		h, err := geo.ParseHeader(rest, end)
		if err == nil && segment.HeaderSize+int(h.Length) > len(rest) {
			err = segment.ErrPayload
		}
		if err != nil {
			return frames, end, err
		}
		payload := rest[segment.HeaderSize : segment.HeaderSize+int(h.Length)]
		key, value, err := h.Check(payload)
		if err != nil {
			return frames, end, err
		}
		if len(key) > 0 && match(h.LSN, string(key), value) {
			h.Erase(payload)
			frames++
		}
		if end = h.End(); end == geo.End(number) || geo.Offset(end) >= int64(len(b)) {
			return frames, end, segment.ErrEnd
		}
	}
}

// through returns an error if the frames of a segment's copy end too early, at the position end. They must end
// where the next segment records their end. If no next segment can be read, a header of zeros must follow them.
// cause is the error that was found at end.
func (l *FileLog) through(number uint64, geo segment.Geometry, end LSN, cause error) error {
	next, err := l.startOf(number + 1)
	switch {
	case err == nil && next.Geometry == geo && next.PrevEnd != 0: // 0 where a repair has begun a new log
		if next.PrevEnd != end {
			return fmt.Errorf("%w: at position %d, but according to the next segment it must end at %d: %w",
				errNotThrough, end, next.PrevEnd, cause)
		}
		return nil
	case err != nil && !past.IsNoFrame(err):
		return err
	case !errors.Is(cause, segment.ErrEnd):
		return fmt.Errorf("%w: %w", errNotThrough, cause)
	}
	return nil
}

func (l *FileLog) startOf(number uint64) (segment.Start, error) {
	if c, err := past.OpenCopy(l.o.FS, l.o.walDir(), number); err == nil {
		defer c.Close()
		if s, _, err := past.ReadStart(c); err == nil {
			return s, nil
		}
	}
	f, err := l.segment(number)
	if err != nil {
		return segment.Start{}, err
	}
	s, _, err := past.ReadStart(f)
	return s, err
}

// erasedSegment is a segment in memory of which some frames are erased. It is a past.Source, which is written to
// archive/ in place of the old copy.
type erasedSegment struct {
	*bytes.Reader
	old *past.Copy // the older copy; nil if it cannot be opened
}

// Name returns the path of the old copy.
func (e *erasedSegment) Name() string {
	if e.old == nil {
		return "archive"
	}
	return e.old.Name()
}

// Packed returns block i with its header in compressed form, taken from the old copy, if the block is unchanged, and
// otherwise nil. Most blocks contain no purged data, and need not be compressed again.
func (e *erasedSegment) Packed(i int, plain []byte) []byte {
	if e.old == nil {
		return nil
	}
	return e.old.Packed(i, plain)
}
