package vector

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/varve-db/varve/errs"
)

// Sizes of the parts of a FAISS file; its layout is in the package comment.
const (
	headSize  = 82
	innerHead = 37
	idsHead   = 8
	ignored   = 1 << 20 // the value that FAISS writes into fields that it ignores

	magicIDMap  = "IxMp"
	magicIDMap2 = "IxM2"
	magicIP     = "IxFI"
	magicL2     = "IxF2"

	// maxDim is the maximum number of dimensions that a file may have. It is far above the limits of all stores.
	maxDim = 1 << 20
)

// shape has the values that determine the header and the size of a FAISS file.
type shape struct {
	metric Metric
	dim    int
	rows   int64
}

func (s shape) rowSize() int64 { return 4 * int64(s.dim) }

// idsAt returns the offset at which the list of ids begins in the FAISS file: first the number of ids, then the ids.
func (s shape) idsAt() int64 { return headSize + s.rows*s.rowSize() }

func (s shape) size() int64 { return s.idsAt() + idsHead + 8*s.rows }

func (s shape) header() []byte {
	le := binary.LittleEndian
	flat := magicIP
	if s.metric == L2 {
		flat = magicL2
	}
	b := make([]byte, 0, headSize)
	for _, magic := range []string{magicIDMap2, flat} {
		b = append(b, magic...)
		b = le.AppendUint32(b, uint32(s.dim))
		b = le.AppendUint64(b, uint64(s.rows))
		b = le.AppendUint64(b, ignored)
		b = le.AppendUint64(b, ignored)
		b = append(b, 1)
		b = le.AppendUint32(b, uint32(s.metric))
	}
	return le.AppendUint64(b, uint64(s.rows)*uint64(s.dim))
}

// parseHeader parses the header of a FAISS file that has size bytes. Each error is a *errs.CorruptionError with the
// offset of the invalid value.
func parseHeader(name string, b []byte, size int64) (shape, error) {
	bad := func(off int64, format string, args ...any) (shape, error) {
		return shape{}, &errs.CorruptionError{Path: name, Offset: off, Err: fmt.Errorf(format, args...)}
	}
	if len(b) < headSize || size < headSize+idsHead {
		return bad(0, "a file of %d bytes is too short for a FAISS index with ids", size)
	}
	le := binary.LittleEndian
	if m := string(b[:4]); m != magicIDMap && m != magicIDMap2 {
		return bad(0, "%s: the outer index must be an IndexIDMap or IndexIDMap2 (IxMp, IxM2)",
			indexType(m))
	}
	s := shape{metric: Metric(le.Uint32(b[33:])), dim: int(int32(le.Uint32(b[4:]))), rows: int64(le.Uint64(b[8:]))}
	if s.metric != IP && s.metric != L2 {
		return bad(33, "metric %d is not supported: the metric must be 0 (inner product) or 1 (L2)", s.metric)
	}
	flat := magicIP
	if s.metric == L2 {
		flat = magicL2
	}
	switch m := string(b[innerHead : innerHead+4]); {
	case m == flat:
	case m == magicIP || m == magicL2:
		return bad(innerHead, "the type %q of the inner index does not fit the metric %v of the outer index", m,
			s.metric)
	default:
		return bad(innerHead, "%s: the inner index must be an IndexFlatIP or IndexFlatL2 (IxFI, IxF2)",
			indexType(m))
	}
	if b[32] != 1 || b[69] != 1 {
		return bad(32, "the FAISS index is not trained")
	}
	if s.dim < 1 || s.dim > maxDim {
		return bad(4, "invalid number of dimensions: %d", s.dim)
	}
	if s.rows < 0 || s.rows > (math.MaxInt64-headSize-idsHead)/(s.rowSize()+8) {
		return bad(8, "invalid number of vectors: %d", s.rows)
	}
	for _, f := range []struct {
		off       int64
		got, want uint64
		what      string
	}{
		{41, uint64(le.Uint32(b[41:])), uint64(s.dim), "dimensions"},
		{45, le.Uint64(b[45:]), uint64(s.rows), "vectors"},
		{70, uint64(le.Uint32(b[70:])), uint64(s.metric), "as metric"},
		{74, le.Uint64(b[74:]), uint64(s.rows) * uint64(s.dim), "numbers"},
	} {
		if f.got != f.want {
			return bad(f.off, "the inner index has %d %s, but the outer index requires %d", f.got, f.what, f.want)
		}
	}
	if size != s.size() {
		return bad(min(size, s.size()),
			"the file has %d bytes, but a file of %d vectors with %d dimensions has %d bytes", size, s.rows, s.dim,
			s.size())
	}
	return s, nil
}

// indexType returns a readable name for the first four bytes of a FAISS index.
func indexType(magic string) string {
	name := map[string]string{
		magicIDMap: "an IndexIDMap", magicIDMap2: "an IndexIDMap2", magicIP: "an IndexFlatIP", magicL2: "an IndexFlatL2",
		"IwFl": "an IndexIVFFlat", "IwPQ": "an IndexIVFPQ", "IwSq": "an IndexIVFScalarQuantizer", "IxPq": "an IndexPQ",
		"IxSQ": "an IndexScalarQuantizer",
		"IHNf": "an IndexHNSWFlat", "IHNp": "an IndexHNSWPQ", "IHNs": "an IndexHNSWSQ", "IxHe": "an IndexLSH",
		"IxFl": "an IndexFlat of another metric", "IxPT": "an IndexPreTransform", "IxRF": "an IndexRefineFlat",
	}[magic]
	if name == "" {
		return fmt.Sprintf("%q: not a known FAISS index", magic)
	}
	return fmt.Sprintf("%s (%s)", name, magic)
}

var errTwice = errors.New("duplicate id")
