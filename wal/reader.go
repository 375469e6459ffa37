package wal

import (
	"context"
	"strings"

	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// Reader reads entries by position, as FileLog.ReadAt does. If the positions are in ascending order and close together,
// it reads ahead. A Reader must not be used by several goroutines at the same time. The Value of an entry is valid
// until the next call.
type Reader struct {
	l    *FileLog
	buf  []byte
	base LSN // position of the first byte of buf
	step int // size of the last read in bytes
}

// readAhead is the maximum number of bytes that a Reader reads at once.
const readAhead = 256 << 10

// Reader returns a new Reader.
func (l *FileLog) Reader() *Reader { return &Reader{l: l} }

// At returns the entry at pos, which must be the LSN of an entry.
func (r *Reader) At(ctx context.Context, pos LSN) (Entry, error) {
	if e, ok := r.buffered(pos); ok {
		return e, nil
	}
	if r.fill(pos) {
		if e, ok := r.buffered(pos); ok {
			return e, nil
		}
	}
	// Larger than the buffer, or missing: ReadAt tells which.
	return r.l.ReadAt(ctx, pos)
}

// buffered returns the entry at pos if the read-ahead buffer has the whole entry, undamaged. Otherwise it returns
// false.
func (r *Reader) buffered(pos LSN) (Entry, bool) {
	if pos < r.base || pos-r.base >= uint64(len(r.buf)) {
		return Entry{}, false
	}
	b := r.buf[pos-r.base:]
	h, err := r.l.geo.ParseHeader(b, pos)
	if err != nil || segment.HeaderSize+int(h.Length) > len(b) {
		return Entry{}, false
	}
	payload := b[segment.HeaderSize:][:h.Length]
	if _, _, err := h.Check(payload); err != nil {
		return Entry{}, false
	}
	e := past.EntryIn(&h, payload)
	e.Key = strings.Clone(e.Key)
	return e, true
}

// fill reads the part of a segment that begins at pos into the buffer. It reads twice as much as before if pos is
// close to the end of the last read. It reads nothing at or after the durable position, because a frame there may
// still be replaced by another one. It returns false if there is nothing to read or the read fails.
func (r *Reader) fill(pos LSN) bool {
	switch end := r.base + uint64(len(r.buf)); {
	case r.step > 0 && pos >= r.base && pos < end+uint64(r.step):
		r.step = min(2*r.step, readAhead)
	default:
		r.step = readGuess
	}
	number := r.l.geo.Number(pos)
	to := min(r.l.geo.End(number), r.l.Durable(), pos+uint64(r.step))
	r.base, r.buf = pos, r.buf[:0]
	if to <= pos {
		return false
	}
	f, err := r.l.segment(number)
	if err != nil {
		return false
	}
	if cap(r.buf) < int(to-pos) {
		r.buf = make([]byte, r.step)
	}
	n, err := past.ReadFull(f, r.buf[:to-pos], r.l.geo.Offset(pos))
	r.buf = r.buf[:n]
	return err == nil
}
