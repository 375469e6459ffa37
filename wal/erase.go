package wal

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

var errNotThrough = errors.New("the frames end before the end of the copy")

// erased reads the archived copy of a segment, erases the wanted frames, and clears everything after the last
// frame. It returns the result, in b if b is large enough. frames is the number of frames that it erased; changed
// reports whether the result differs from the copy.
func (l *FileLog) erased(number uint64, b []byte,
	wanted func(at LSN, key string, value []byte) bool) (frames int, changed bool, _ []byte, err error) {
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
	frames, at, here := eraseFrames(start.Geometry, number, b, wanted)
	if err := l.through(number, start.Geometry, at, here); err != nil {
		return 0, false, b, err
	}
	tail := b[min(int64(at-start.Geometry.Start(number)), int64(len(b))):]
	changed = frames > 0 || c.Longer() || slices.ContainsFunc(tail, func(c byte) bool { return c != 0 })
	clear(tail)
	return frames, changed, b, nil
}

// eraseFrames erases the wanted frames of a segment that is in memory. frames is the number erased, at the
// position where the readable frames end, and here the error found there.
func eraseFrames(geo segment.Geometry, number uint64, b []byte,
	wanted func(at LSN, key string, value []byte) bool) (frames int, at LSN, here error) {
	for at = geo.Start(number); ; {
		rest := b[geo.Offset(at):]
		h, err := geo.ParseHeader(rest, at)
		if err == nil && segment.HeaderSize+int(h.Length) > len(rest) {
			err = segment.ErrPayload
		}
		if err != nil {
			return frames, at, err
		}
		payload := rest[segment.HeaderSize : segment.HeaderSize+int(h.Length)]
		key, value, err := h.Check(payload)
		if err != nil {
			return frames, at, err
		}
		if len(key) > 0 && wanted(h.LSN, string(key), value) {
			h.Erase(payload)
			frames++
		}
		if at = h.End(); at == geo.End(number) || geo.Offset(at) >= int64(len(b)) {
			return frames, at, segment.ErrEnd
		}
	}
}

// through returns an error unless the frames of a segment's copy reach its end, which the next segment
// records. Without a next segment, the frames must end with a header of zeros.
func (l *FileLog) through(number uint64, geo segment.Geometry, end LSN, here error) error {
	next, err := l.startOf(number + 1)
	switch {
	case err == nil && next.Geometry == geo && next.PrevEnd != 0: // 0 where a repair has begun a new log
		if next.PrevEnd != end {
			return fmt.Errorf("%w: the frames end at %d, but the next segment records %d as their end: %w",
				errNotThrough, end, next.PrevEnd, here)
		}
		return nil
	case err != nil && !past.IsNoFrame(err):
		return err
	case !errors.Is(here, segment.ErrEnd):
		return fmt.Errorf("%w: %w", errNotThrough, here)
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

// erasedSegment is a segment in memory some of whose frames are erased. As a past.Source it is written to
// archive/ in place of the older copy.
type erasedSegment struct {
	*bytes.Reader
	old *past.Copy // the older copy; nil if it cannot be opened
}

// Name returns the path of the copy that is replaced.
func (e *erasedSegment) Name() string {
	if e.old == nil {
		return "archive"
	}
	return e.old.Name()
}

// Packed returns block i, with its header, in the compressed form of the older copy, if the block is unchanged.
// Most blocks contain no purged data and need not be compressed again. For a changed block it returns nil.
func (e *erasedSegment) Packed(i int, plain []byte) []byte {
	if e.old == nil {
		return nil
	}
	return e.old.Packed(i, plain)
}
