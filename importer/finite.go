package importer

import (
	"bufio"
	"bytes"
	"io"
)

// finiteReader is a reader of JSON that replaces every bare NaN, Infinity and -Infinity by null. Python's json module
// writes these words, but JSON does not allow them. The contents of strings do not change.
type finiteReader struct {
	src      io.Reader
	err      error
	in       []byte // bytes that are read and not processed yet
	out      []byte // bytes that are processed and not passed on yet
	inString bool
	escaped  bool
	found    int
}

// newFiniteReader returns a finiteReader for src. It skips a byte order mark at the beginning of src.
func newFiniteReader(src io.Reader) *finiteReader {
	in := bufio.NewReaderSize(src, 32<<10)
	if head, _ := in.Peek(len(bom)); string(head) == string(bom) {
		_, _ = in.Discard(len(bom)) // they are in the buffer
	}
	return &finiteReader{src: in}
}

var notFinite = [][]byte{[]byte("-Infinity"), []byte("Infinity"), []byte("NaN")}

const longestWord = len("-Infinity")

func (f *finiteReader) Read(p []byte) (int, error) {
	for len(f.out) == 0 && f.err == nil {
		at := len(f.in)
		f.in = append(f.in, make([]byte, 32<<10)...)
		n, err := f.src.Read(f.in[at:])
		f.in, f.err = f.in[:at+n], err
		f.sift()
	}
	if len(f.out) == 0 {
		return 0, f.err
	}
	n := copy(p, f.out)
	f.out = f.out[n:]
	return n, nil
}

// sift moves bytes from in to out, and writes null in place of NaN, Infinity and -Infinity. The last bytes of in stay
// there if they may be the beginning of one of these words and src may have more bytes.
func (f *finiteReader) sift() {
	f.out = f.out[:0]
	i := 0
	for ; i < len(f.in); i++ {
		c := f.in[i]
		switch {
		case f.inString:
			f.inString = f.escaped || c != '"'
			f.escaped = !f.escaped && c == '\\'
		case c == '"':
			f.inString = true
		case c == '-' || c == 'I' || c == 'N':
			if f.err == nil && len(f.in)-i < longestWord {
				f.in = append(f.in[:0], f.in[i:]...)
				return
			}
			if n := word(f.in[i:]); n > 0 {
				f.found++
				f.out = append(f.out, "null"...)
				i += n - 1
				continue
			}
		}
		f.out = append(f.out, c)
	}
	f.in = f.in[:0]
}

func word(text []byte) int {
	for _, w := range notFinite {
		if bytes.HasPrefix(text, w) {
			return len(w)
		}
	}
	return 0
}
