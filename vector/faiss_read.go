package vector

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/varve-db/varve/errs"
)

// Index is a FAISS file of another program, opened to import its vectors.
type Index struct {
	name string
	r    io.ReaderAt
	shape
	ids   []int64
	byID  []idRow // the ids with their rows, sorted by id
	plain []byte  // buffer for the bytes of one row
}

type idRow struct{ id, row int64 }

// maxRows is the maximum number of vectors in an imported file. The ids of the vectors need 24 bytes of memory each.
const maxRows = 1 << 28

// ReadIndex reads the head and the ids of a FAISS file that has size bytes. The file must be an IndexFlatIP or
// IndexFlatL2 inside an IndexIDMap or IndexIDMap2. If the file is invalid, the error is a *errs.CorruptionError with
// the offset of the fault. A list of ids of the wrong length and a repeated id are invalid too, although FAISS accepts
// them. If the file has more than 2²⁸ vectors, the error matches errs.ErrTooLarge. ReadIndex needs 24 bytes of memory
// for each id.
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
	if err := x.readIDs(); err != nil {
		return nil, err
	}
	x.byID = make([]idRow, s.rows)
	for i, id := range x.ids {
		x.byID[i] = idRow{id, int64(i)}
	}
	if err := x.twice(x.byID); err != nil {
		return nil, err
	}
	return x, nil
}

// idsPiece is the number of ids that readIDs reads at once.
const idsPiece = 8 << 10

// readIDs reads the ids in pieces and stops at the first piece with a duplicate id. This limits the memory that
// readIDs allocates for a sparse file, which has the required length but contains no data: the file reads as zeros,
// which are duplicate ids.
func (x *Index) readIDs() error {
	le := binary.LittleEndian
	var head [idsHead]byte
	if err := readFull(x.r, head[:], x.idsAt()); err != nil {
		return fmt.Errorf("reading %s: %w", x.name, err)
	}
	if n := le.Uint64(head[:]); n != uint64(x.rows) {
		return x.damaged(x.idsAt(), fmt.Errorf("the number of ids is %d, but the number of vectors is %d", n, x.rows))
	}
	if x.rows > maxRows {
		return fmt.Errorf("%s: %w", x.name, &errs.FieldError{Field: "vectors", Value: fmt.Sprint(x.rows),
			Limit: fmt.Sprint(maxRows), Err: errs.ErrTooLarge})
	}
	b := make([]byte, 8*min(x.rows, idsPiece))
	piece := make([]idRow, 0, len(b)/8)
	for int64(len(x.ids)) < x.rows {
		from := int64(len(x.ids))
		b = b[:8*min(x.rows-from, idsPiece)]
		if err := readFull(x.r, b, x.idsAt()+idsHead+8*from); err != nil {
			return fmt.Errorf("reading %s: %w", x.name, err)
		}
		piece = piece[:0]
		for i := range len(b) / 8 {
			id := int64(le.Uint64(b[8*i:]))
			x.ids = append(x.ids, id)
			piece = append(piece, idRow{id, from + int64(i)})
		}
		if err := x.twice(piece); err != nil {
			return err
		}
	}
	return nil
}

// twice sorts list, ids with their rows, and returns an error if an id occurs twice in it.
func (x *Index) twice(list []idRow) error {
	slices.SortFunc(list, func(a, b idRow) int { return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.row, b.row)) })
	for i := 1; i < len(list); i++ {
		if list[i].id == list[i-1].id {
			return x.damaged(x.idsAt()+idsHead+8*list[i].row,
				fmt.Errorf("%w: %d, in rows %d and %d", errTwice, list[i].id, list[i-1].row, list[i].row))
		}
	}
	return nil
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

// Len returns the number of vectors in the file.
func (x *Index) Len() int64 { return x.rows }

// Dim returns the number of dimensions.
func (x *Index) Dim() int { return x.dim }

// Metric returns the metric of the index.
func (x *Index) Metric() Metric { return x.metric }

// ID returns the FAISS id of the vector in a row.
func (x *Index) ID(row int64) int64 { return x.ids[row] }

// RowOf returns the row that has the given id, or -1 if the file does not contain the id.
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

// Vector appends the vector in a row to dst.
func (x *Index) Vector(dst []float32, row int64) ([]float32, error) {
	if row < 0 || row >= x.rows {
		return dst, fmt.Errorf("row %d of %s is out of range: the file has %d rows, numbered from 0", row, x.name, x.rows)
	}
	if x.plain == nil {
		x.plain = make([]byte, x.rowSize())
	}
	if err := readFull(x.r, x.plain, headSize+row*x.rowSize()); err != nil {
		return dst, fmt.Errorf("reading %s: %w", x.name, err)
	}
	for j := range x.dim {
		dst = append(dst, elementAt(x.plain, j))
	}
	return dst, nil
}
