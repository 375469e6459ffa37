package vfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/varve-db/varve/errs"
)

// textStep is how much of a text is read before it is looked at.
const textStep = 1 << 20

// sparseMost is how large a file may be, whatever of it are holes, to be read as a whole.
const sparseMost = 64 << 20

var zeroStep [textStep]byte

// ErrZeros: a file that should be a text has a long run of zeros, and was not read further.
var ErrZeros = errors.New("zeros instead of text")

// ReadText is ReadFile for a file that should be a text. It stops at the first MiB of zeros, which
// is ErrZeros and errs.ErrCorrupt: a file of a stranger that is sparse costs one read, and memory for
// it, whatever its size is.
func ReadText(fsys FS, name string, limit int64) ([]byte, error) {
	b, err := readFile(fsys, name, limit, ReadTextAt)
	if errors.Is(err, ErrZeros) {
		err = pathError("read", name, err)
	}
	return b, err
}

// CheckText refuses a text that ReadText would not read back.
func CheckText(b []byte) error {
	for at := 0; at+textStep < len(b); at += textStep {
		if bytes.Equal(b[at:at+textStep], zeroStep[:]) {
			return fmt.Errorf("%w: from byte %d on: %w", ErrZeros, at, errs.ErrInvalid)
		}
	}
	return nil
}

// ReadTextAt reads size bytes from the start, as ReadText does.
func ReadTextAt(f io.ReaderAt, size int64) ([]byte, error) {
	b, err := readAt(f, make([]byte, min(size, textStep)), 0)
	for err == nil && int64(len(b)) < size && len(b)%textStep == 0 && len(b) > 0 {
		at := len(b) - textStep
		if bytes.Equal(b[at:], zeroStep[:]) {
			return nil, fmt.Errorf("%w: from byte %d on; it is not read further (%d bytes): %w", ErrZeros, at, size,
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

// readAt fills b, or gives the part that there is.
func readAt(f io.ReaderAt, b []byte, off int64) ([]byte, error) {
	n, err := f.ReadAt(b, off)
	if err == io.EOF || n == len(b) { // cut short since
		err = nil
	}
	return b[:n], err
}

// SparseAt says it of a file by its name.
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

// Sparse reports whether a file is large and consists of holes for the most part: none that a store has
// written, and reading it may take hours. Where the system does not tell, it is not.
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
