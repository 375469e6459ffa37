package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/varve-db/varve/errs"
)

// The kinds of log entries.
const (
	KindPut    = 16
	KindDelete = 17
	KindModel  = 18 // the entry sets the model of the vectors: see internal/state
	KindKept   = 19 // the entry is a copy of an older version: see Kept
	KindWriter = 20 // the entry explains the number of a writer
	KindPurge  = 21 // the entry names a purged document or version: see internal/purgefile
)

// The first byte of a key in the log, which determines what the key belongs to.
const (
	Memory   = 'm'
	Assembly = 'a'
	Note     = 'o'
	Working  = 'w'
	Model    = 'v' // model of the vectors: the key is this byte alone, see internal/state
	Writer   = 'u' // explanations of writers: the key is this byte alone, see internal/state
	Purge    = 'p' // entry that names purged documents and versions; its key is this byte alone, see internal/state
	Kept     = 'k' // copies of older versions: the byte is followed by the document's key, see kept.go
)

// The names of the folders with the files of each kind of document. The sections of the index and of the
// vectors have the same names.
const (
	MemoryFolder   = "memories"
	AssemblyFolder = "assemblies"
	NoteFolder     = "notes"
)

// Record is the content of the log entry of one document.
type Record struct {
	Previous uint64
	Created  bool // there was no version before, or only a deletion
	Line     []byte
	Vector   []float32
	Doc      []byte // the document: uncompressed when encoding; when decoded see View
}

const (
	// Version is the format version of the records that this package reads and writes. It is the first byte of a
	// record.
	Version   = 1
	flagZstd  = 1
	flagNew   = 2
	headSize  = 24
	zstdAbove = 4 << 10
	// mostShrunk is the maximum factor by which a document is compressed. A document that zstd would
	// compress more is written uncompressed, so that a log which this program wrote inflates to at most
	// 64 times its size.
	mostShrunk = 64
)

// Encode appends the encoded record to dst, and also returns the size that the record has without compression.
func (c *Codec) Encode(dst []byte, r *Record) ([]byte, uint32) {
	at := len(dst)
	var head [headSize]byte
	le := binary.LittleEndian
	head[0] = Version
	if r.Created {
		head[1] |= flagNew
	}
	le.PutUint32(head[4:], uint32(len(r.Line)))
	le.PutUint64(head[8:], r.Previous)
	le.PutUint32(head[16:], uint32(len(r.Vector)))
	le.PutUint32(head[20:], uint32(len(r.Doc)))
	dst = append(dst, head[:]...)
	dst = append(dst, r.Line...)
	for _, f := range r.Vector {
		dst = le.AppendUint32(dst, math.Float32bits(f))
	}
	inflated := uint32(len(dst) - at + len(r.Doc))
	if len(r.Doc) >= zstdAbove {
		doc := len(dst)
		z := c.compress(dst, r.Doc)
		if n := len(z) - doc; n < len(r.Doc) && len(r.Doc) <= mostShrunk*n {
			z[at+1] |= flagZstd
			return z, inflated
		}
	}
	return append(dst, r.Doc...), inflated
}

// View is a record that was parsed in place: it shares the memory of the log entry's value.
type View struct {
	Previous uint64
	Created  bool
	Line     []byte
	vector   []byte
	doc      []byte
	size     int
	zstd     bool
}

var errRecord = errors.New("not a record")

// Parse parses the value of a log entry as a record. It does not decompress the document.
func Parse(value []byte) (View, error) {
	if len(value) < headSize {
		return View{}, fmt.Errorf("%w: the value has only %d bytes, fewer than its header needs", errRecord, len(value))
	}
	if value[0] != Version {
		return View{}, &errs.NewerError{Path: "wal", Format: uint64(value[0]), Reads: Version}
	}
	le := binary.LittleEndian
	line, dims := uint64(le.Uint32(value[4:])), uint64(le.Uint32(value[16:]))
	rest := value[headSize:]
	if line+4*dims > uint64(len(rest)) {
		return View{}, fmt.Errorf("%w: the lengths of line and vector exceed the length of the value", errRecord)
	}
	v := View{
		Previous: le.Uint64(value[8:]), Created: value[1]&flagNew != 0, Line: rest[:line:line],
		vector: rest[line : line+4*dims], doc: rest[line+4*dims:],
		size: int(le.Uint32(value[20:])), zstd: value[1]&flagZstd != 0,
	}
	if !v.zstd && v.size != len(v.doc) {
		return View{}, fmt.Errorf("%w: the document has %d bytes, but the header names %d", errRecord, len(v.doc), v.size)
	}
	return v, nil
}

// Dims returns the number of dimensions of the record's vector.
func (v *View) Dims() int { return len(v.vector) / 4 }

// Vector appends the elements of the record's vector to dst.
func (v *View) Vector(dst []float32) []float32 {
	for b := v.vector; len(b) > 0; b = b[4:] {
		dst = append(dst, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return dst
}

// Finite reports whether all numbers of the vector are finite, that is, none is NaN or infinite.
func (v *View) Finite() bool {
	const exponent = 0xff << 23
	for b := v.vector; len(b) >= 4; b = b[4:] {
		if binary.LittleEndian.Uint32(b)&exponent == exponent {
			return false
		}
	}
	return true
}

// Size returns the length of the uncompressed document in bytes.
func (v *View) Size() int { return v.size }

// Overpacked reports whether the document is compressed by a factor of more than 64. Encode does not write such a
// record. If there is one, an older program has written it, or the log is forged.
func (v *View) Overpacked() bool { return v.zstd && v.size > mostShrunk*len(v.doc) }

// Plain returns the document as a part of the log entry's value, and false if the document is compressed.
func (v *View) Plain() ([]byte, bool) { return v.doc, !v.zstd }

// Doc returns the document, in newly allocated memory. If the document is compressed, and would be larger than limit
// bytes or than the size that Bound has set, Doc returns an error.
func (c *Codec) Doc(v *View, limit int) ([]byte, error) {
	if !v.zstd {
		return append(make([]byte, 0, len(v.doc)), v.doc...), nil
	}
	if err := c.Fits(v, limit); err != nil {
		return nil, err
	}
	return c.inflate(make([]byte, 0, v.size), v.doc, v.size)
}

// Fits returns an error if the decompressed document is larger than limit bytes or than the size that Bound has set.
func (c *Codec) Fits(v *View, limit int) error {
	if c.most > 0 {
		limit = min(limit, c.most)
	}
	if v.size > limit {
		return fmt.Errorf("%w: the document has %d bytes, but the limit is %d", errRecord, v.size, limit)
	}
	return nil
}
