package vfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/varve-db/varve/errs"
)

// textStep is the size of the pieces in which a text is read; each piece is checked for zeros.
const textStep = 1 << 20

// zerosMost is the size in bytes up to which a file is read even if all its bytes are zero, because a note of this size
// may have any content.
const zerosMost = 16 << 20

// sparseMost is the size in bytes up to which a file is read even if it consists of holes only.
const sparseMost = 64 << 20

var zeroStep [textStep]byte

// ErrZeros means that a file which should be text has a long run of zeros, and was not read further.
var ErrZeros = errors.New("the file has zeros instead of text")

// ReadText reads a file that should be text, as ReadFile does. In a file of more than 16 MiB it stops at the first MiB
// that has only zeros, with an error that matches ErrZeros and errs.ErrCorrupt. So a sparse file from elsewhere costs
// little time and memory, whatever its size is.
func ReadText(fsys FS, name string, limit int64) ([]byte, error) {
	b, err := readFile(fsys, name, limit, ReadTextAt)
	if errors.Is(err, ErrZeros) {
		err = pathError("read", name, err)
	}
	return b, err
}

// CheckText returns an error for contents that ReadText would not have read to the end.
func CheckText(b []byte) error {
	for at := 0; len(b) > zerosMost && at+textStep < len(b); at += textStep {
		if bytes.Equal(b[at:at+textStep], zeroStep[:]) {
			return fmt.Errorf("%w: from byte %d on: %w", ErrZeros, at, errs.ErrInvalid)
		}
	}
	return nil
}

// ReadTextAt reads size bytes from the start of an open file, with the same checks as ReadText.
func ReadTextAt(f io.ReaderAt, size int64) ([]byte, error) {
	b, err := readAt(f, make([]byte, min(size, textStep)), 0)
	for err == nil && int64(len(b)) < size && len(b)%textStep == 0 && len(b) > 0 {
		at := len(b) - textStep
		if size > zerosMost && bytes.Equal(b[at:], zeroStep[:]) {
			return nil, fmt.Errorf("%w: from byte %d on; reading stopped (file size %d bytes): %w", ErrZeros, at, size,
				errs.ErrCorrupt)
		}
		if at == 0 {
			b = append(make([]byte, 0, size), b...)
		}
		n := len(b)
		var more []byte
		more, err = readAt(f, b[n:min(int64(n)+textStep, size)], int64(n))
		b = b[:n+len(more)]
	}
	return b, err
}

// readAt reads len(b) bytes at an offset; at the end of the file it returns the part that was read.
func readAt(f io.ReaderAt, b []byte, off int64) ([]byte, error) {
	n, err := f.ReadAt(b, off)
	if err == io.EOF || n == len(b) { // cut short since
		err = nil
	}
	return b[:n], err
}

// SparseAt reports whether the file at a path is large and consists mostly of holes; see Sparse.
func SparseAt(fsys FS, name string, size int64) bool {
	if size <= sparseMost {
		return false
	}
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	return Sparse(f, size)
}

// Sparse reports whether a file is large and consists mostly of holes. A store writes no such file, and reading one
// may take hours. Sparse returns false if the system does not report holes.
func Sparse(f File, size int64) bool {
	if size <= sparseMost {
		return false
	}
	data := int64(0)
	for at := int64(0); at < size; {
		from, end := nextData(f, at, size)
		if data += end - from; 2*data >= size {
			return false
		}
		at = max(end, at+1)
	}
	return true
}
