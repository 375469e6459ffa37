package remote

import "io"

// Fill reads from r until b is full or r has ended. n is the number of bytes read; end reports whether r has ended.
// Only io.EOF itself is the end: io.ErrUnexpectedEOF, and an error that wraps io.EOF, mean that bytes are missing, and
// are returned. A Remote reads the body of a snapshot with Fill.
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
