package vector

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/varve-db/varve/internal/errs"
)

// Index is a FAISS file of somebody else, opened to take its vectors over.
type Index struct {
	name string
	r    io.ReaderAt
	shape
	ids   []int64
	byID  []idRow // sorted
	plain []byte  // one row
}

type idRow struct{ id, row int64 }

// ReadIndex reads head and ids of an IndexFlatIP or IndexFlatL2 inside an
// IndexIDMap or IndexIDMap2 of size bytes. A list of ids of another length, and
// an id that stands twice, which FAISS accepts, are *errs.CorruptionError like
// all else that is wrong; it names the byte.
func ReadIndex(name string, r io.ReaderAt, size int64) (*Index, error) {
	head := make([]byte, min(headSize, size))
	if err := readFull(r, head, 0); err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	s, err := parseHeader(name, head, size)
	if err != nil {
		return nil, err
	}
	x := &Index{name: name, r: r, shape: s}
	b := make([]byte, idsHead+8*s.rows) // the size was compared with the file's
	if err := readFull(r, b, s.idsAt()); err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	le := binary.LittleEndian
	if n := le.Uint64(b); n != uint64(s.rows) {
		return nil, x.damaged(s.idsAt(), fmt.Errorf("%d ids for %d vectors", n, s.rows))
	}
	x.ids = make([]int64, s.rows)
	x.byID = make([]idRow, s.rows)
	for i := range x.ids {
		x.ids[i] = int64(le.Uint64(b[idsHead+8*i:]))
		x.byID[i] = idRow{x.ids[i], int64(i)}
	}
	slices.SortFunc(x.byID, func(a, b idRow) int {
		switch {
		case a.id < b.id:
			return -1
		case a.id > b.id:
			return 1
		}
		return int(a.row - b.row)
	})
	for i := 1; i < len(x.byID); i++ {
		if x.byID[i].id == x.byID[i-1].id {
			return nil, x.damaged(s.idsAt()+idsHead+8*x.byID[i].row, fmt.Errorf("%w: %d, of rows %d and %d", errTwice, x.byID[i].id, x.byID[i-1].row, x.byID[i].row))
		}
	}
	return x, nil
}

func readFull(r io.ReaderAt, b []byte, off int64) error {
	n, err := r.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if err == io.EOF || err == nil {
		err = io.ErrUnexpectedEOF
	}
	return err
}

func (x *Index) damaged(off int64, err error) error {
	return &errs.CorruptionError{Path: x.name, Offset: off, Err: err}
}

// Len is the number of vectors, Dim that of their dimensions.
func (x *Index) Len() int64 { return x.rows }

// Dim: see Len.
func (x *Index) Dim() int { return x.dim }

// Metric is how the index compares.
func (x *Index) Metric() Metric { return x.metric }

// ID is the id of a row.
func (x *Index) ID(row int64) int64 { return x.ids[row] }

// RowOf is the row of an id, -1 if there is none.
func (x *Index) RowOf(id int64) int64 {
	i, ok := slices.BinarySearchFunc(x.byID, id, func(a idRow, id int64) int {
		switch {
		case a.id < id:
			return -1
		case a.id > id:
			return 1
		}
		return 0
	})
	if !ok {
		return -1
	}
	return x.byID[i].row
}

// Vector appends the vector of a row to dst.
func (x *Index) Vector(dst []float32, row int64) ([]float32, error) {
	if row < 0 || row >= x.rows {
		return dst, fmt.Errorf("row %d of %d", row, x.rows)
	}
	if x.plain == nil {
		x.plain = make([]byte, x.rowSize())
	}
	if err := readFull(x.r, x.plain, headSize+row*x.rowSize()); err != nil {
		return dst, fmt.Errorf("reading %s: %w", x.name, err)
	}
	for j := range x.dim {
		dst = append(dst, at(x.plain, j))
	}
	return dst, nil
}
