package remote

import (
	"fmt"
	"io"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/segment"
)

// MostPiece returns the maximum number of bytes of a piece: a sender ends a piece after 1 MiB with the batch that it is
// in, and a batch takes at most half a segment. The rest is for what an encryption adds. A place may claim any size;
// a reader refuses a piece that claims more.
func MostPiece(geo segment.Geometry) int64 {
	return int64(min(geo.Size/2+geo.Size/1024+4<<20, segment.MaxSize))
}

// Fill reads from r until b is full or r has ended. n is the number of bytes read; end reports whether r has ended.
// Only io.EOF itself means that r has ended. Fill returns any other error, also io.ErrUnexpectedEOF and an error that
// wraps io.EOF, because these mean that bytes are missing. A Remote reads the body of a snapshot with Fill.
func Fill(r io.Reader, b []byte) (n int, end bool, err error) {
	for n < len(b) {
		m, err := r.Read(b[n:])
		n += m
		if err == io.EOF {
			return n, true, nil
		}
		if err != nil {
			return n, false, err
		}
	}
	return n, false, nil
}

// trusted is the number of bytes of memory that ReadAll allocates before any byte has arrived.
const trusted = 1 << 20

// ReadAll reads r to its end. claimed is the size of r that the sending place claims, or -1 if it claims none. A place
// may claim any size and send nothing, so ReadAll allocates memory in proportion to the bytes that have arrived. If
// the claimed size or the actual size is above most, the error matches errs.ErrTooLarge. If r ends before the claimed
// size, the error is io.ErrUnexpectedEOF.
func ReadAll(r io.Reader, claimed, most int64) ([]byte, error) {
	if claimed > most {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are possible", errs.ErrTooLarge, claimed, most)
	}
	size := min(trusted, most)
	if claimed >= 0 {
		size = min(size, claimed)
	}
	b := make([]byte, size+1) // one more: the end is found without more memory
	for n := 0; ; {
		m, end, err := Fill(r, b[n:])
		n += m
		switch {
		case err != nil:
			return nil, err
		case int64(n) > most:
			return nil, fmt.Errorf("%w: more than %d bytes", errs.ErrTooLarge, most)
		case end && int64(n) < claimed:
			return nil, io.ErrUnexpectedEOF
		case end:
			return b[:n], nil
		}
		size := min(2*int64(n), most+1)
		if claimed >= int64(n) {
			size = min(size, claimed+1)
		}
		b = append(make([]byte, 0, size), b...)[:size]
	}
}
