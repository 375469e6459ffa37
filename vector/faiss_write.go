package vector

import (
	"encoding/binary"
	"encoding/hex"
	"io"

	"github.com/cespare/xxhash/v2"
)

// faissWriter writes a FAISS file. It writes the first block last, because that block has the number of rows; the other
// blocks are written in order. It needs heap for two blocks and the hashes.
type faissWriter struct {
	f      io.WriterAt
	shape  shape
	first  []byte // block 0 once it is full, kept until the number of rows is known
	buf    []byte // the block being written
	off    int64  // offset of buf in the file
	hashes []byte // hashes of the blocks, in hex
}

func newFAISSWriter(f io.WriterAt, s shape) *faissWriter {
	w := &faissWriter{f: f, shape: s, buf: make([]byte, 0, blockSize)}
	w.buf = append(w.buf, s.header()...)
	return w
}

func (w *faissWriter) write(b []byte) error {
	for len(b) > 0 {
		n := min(len(b), blockSize-len(w.buf))
		w.buf = append(w.buf, b[:n]...)
		b = b[n:]
		if len(w.buf) == blockSize {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush hashes the block in the buffer and writes it to the file. It does not write the first block but keeps it for
// finish.
func (w *faissWriter) flush() error {
	if w.off == 0 && w.first == nil {
		w.first, w.buf = w.buf, make([]byte, 0, blockSize)
		w.hashes = append(w.hashes, make([]byte, 16)...)
		w.off = int64(len(w.first))
		return nil
	}
	w.hashes = appendHash(w.hashes, w.buf)
	if _, err := w.f.WriteAt(w.buf, w.off); err != nil {
		return err
	}
	w.off += int64(len(w.buf))
	w.buf = w.buf[:0]
	return nil
}

// row writes one vector, in the form that Metric.Row returns.
func (w *faissWriter) row(b []byte) error {
	w.shape.rows++
	return w.write(b)
}

// ids writes the beginning of the list of ids. Call it after the last row, and then call id for each row.
func (w *faissWriter) ids() error {
	return w.write(binary.LittleEndian.AppendUint64(nil, uint64(w.shape.rows)))
}

func (w *faissWriter) id(id int64) error {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(id))
	return w.write(b[:])
}

// finish writes the last block and then the first block. It returns the length of the file.
func (w *faissWriter) finish() (int64, error) {
	if w.first == nil {
		if err := w.flush(); err != nil {
			return 0, err
		}
	}
	if len(w.buf) > 0 {
		if err := w.flush(); err != nil {
			return 0, err
		}
	}
	copy(w.first, w.shape.header())
	copy(w.hashes, appendHash(nil, w.first))
	_, err := w.f.WriteAt(w.first, 0)
	return w.off, err
}

func appendHash(dst, b []byte) []byte {
	var h [8]byte
	binary.BigEndian.PutUint64(h[:], xxhash.Sum64(b))
	return hex.AppendEncode(dst, h[:])
}
