package table

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"

	"github.com/varve-db/varve/internal/yield"
)

// bufferSize is the size of one write in bytes; a multiple of blockSize.
const bufferSize = 8 * blockSize

var errValue = errors.New("the value must be one line of text")

// Writer writes a table into a file from its first byte to its last. It needs heap for one buffer and the hashes. Keys
// must be passed in order.
type Writer struct {
	f        io.WriterAt
	sch      *Schema
	buf      []byte
	off      int64  // offset in the file of the first byte of buf
	hashes   []byte // hashes of the written blocks, hex
	sections []span
	open     int // index of the current section, -1 before the first
	// Number of empty Spare sections that were skipped since the last one written. They are written only if a
	// section after them is written.
	skipped int
	turns   yield.Turns
}

// NewWriter returns a writer that writes a table into f from offset 0.
func NewWriter(f io.WriterAt, sch *Schema) *Writer {
	return &Writer{
		f: f, sch: sch, open: -1,
		buf:      make([]byte, 0, bufferSize),
		sections: make([]span, len(sch.Sections)),
	}
}

// Skip omits the next section from the file. The section must be Spare and must have no entries. If Section is called
// afterwards, the omitted section is written nevertheless, as an empty one.
func (w *Writer) Skip() { w.skipped++ }

// Section begins the next section.
func (w *Writer) Section() error {
	for n := w.skipped; n > 0; n-- {
		w.skipped = 0
		if err := w.begin(); err != nil {
			return err
		}
	}
	return w.begin()
}

func (w *Writer) begin() error {
	if w.open >= 0 {
		if err := w.endSection(); err != nil {
			return err
		}
	}
	w.open++
	if err := w.write([]byte(w.sch.head(w.open))); err != nil {
		return err
	}
	w.sections[w.open].start = w.at()
	return nil
}

// endSection ends the last line of the section, if it has one.
func (w *Writer) endSection() error {
	s := &w.sections[w.open]
	if s.lines > 0 {
		if err := w.write(newline); err != nil {
			return err
		}
	}
	s.end = w.at()
	return nil
}

var newline, comma = []byte("\n"), []byte(",\n")

// Entry writes one line, with a key in encoded form and its value.
func (w *Writer) Entry(key, value []byte) error {
	if len(value) == 0 || bytes.IndexByte(value, '\n') >= 0 {
		return fmt.Errorf("entry %q: %w", key, errValue)
	}
	s := &w.sections[w.open]
	if s.lines > 0 {
		if err := w.write(comma); err != nil {
			return err
		}
	}
	s.lines++
	if cap(w.buf)-len(w.buf) > len(key)+len(value)+3 {
		w.buf = append(w.buf, '"')
		w.buf = append(w.buf, key...)
		w.buf = append(w.buf, '"', ':')
		w.buf = append(w.buf, value...)
		return nil
	}
	for _, b := range [][]byte{{'"'}, key, {'"', ':'}, value} {
		if err := w.write(b); err != nil {
			return err
		}
	}
	return nil
}

// run copies whole lines of another table. It counts them as one line; the caller (merge.section) sets the number of
// lines of the section later.
func (w *Writer) run(lines []byte) error {
	if len(lines) == 0 {
		return nil
	}
	s := &w.sections[w.open]
	if s.lines > 0 {
		if err := w.write(comma); err != nil {
			return err
		}
	}
	s.lines++ // marks the section as not empty; the caller sets the number
	lines = lines[:len(lines)-1]
	if lines[len(lines)-1] == ',' {
		lines = lines[:len(lines)-1]
	}
	return w.write(lines)
}

// at returns the offset in the file at which the next byte is written.
func (w *Writer) at() int64 { return w.off + int64(len(w.buf)) }

func (w *Writer) write(b []byte) error {
	for len(b) > 0 {
		n := min(len(b), cap(w.buf)-len(w.buf))
		w.buf = append(w.buf, b[:n]...)
		b = b[n:]
		if len(w.buf) == cap(w.buf) {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush hashes the blocks in the buffer and writes the buffer to the file.
func (w *Writer) flush() error {
	for b := w.buf; len(b) > 0; {
		n := min(len(b), blockSize)
		w.hashes = appendHash(w.hashes, xxhash.Sum64(b[:n]))
		b = b[n:]
		w.turns.Give()
	}
	return w.raw(w.buf)
}

func (w *Writer) raw(b []byte) error {
	if _, err := w.f.WriteAt(b, w.off); err != nil {
		return err
	}
	w.off += int64(len(b))
	w.buf = w.buf[:0]
	return nil
}

// Finish ends the last section and writes the metadata and the last line, without a sync. live has the number of live
// entries of each section; nil means that all lines are live. It returns the length of the file.
func (w *Writer) Finish(m Meta, live []int64) (int64, error) {
	if n := w.open + 1 + w.skipped; n != len(w.sections) {
		return 0, fmt.Errorf("finishing a table: only %d of %d sections were written", n, len(w.sections))
	}
	w.sections = w.sections[:w.open+1]
	if err := w.endSection(); err != nil {
		return 0, err
	}
	if err := w.write([]byte(foot)); err != nil {
		return 0, err
	}
	if err := w.flush(); err != nil {
		return 0, err
	}
	if bytes.IndexByte(m.Extra, '\n') >= 0 || bytes.Contains(m.Extra, []byte(`,"sections":{`)) {
		return 0, errors.New("the extra metadata must be one line without a member \"sections\"")
	}
	for i := range w.sections {
		s := &w.sections[i]
		s.live = s.lines
		if live != nil {
			s.live = live[i]
		}
	}
	body := w.off
	line := appendMeta(make([]byte, 0, 512+len(w.hashes)+endWidth), w.sch, &m, w.sections)
	line = append(line, w.hashes...)
	line = append(line, blocksTail...)
	hash := xxhash.Sum64(line)
	line = append(line, endHead...)
	line = appendHash(line, uint64(body))
	line = append(line, ' ')
	line = appendHash(line, hash)
	line = append(line, endTail...)
	return body + int64(len(line)), w.raw(line)
}
