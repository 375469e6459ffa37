package remote

import "io"

// Fill reads from r until b is full or r has ended, which only io.EOF itself says: io.ErrUnexpectedEOF, and an error
// that wraps io.EOF, report that bytes are missing. A Remote reads the body of a snapshot with it.
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
