package jsonskip

import (
	"bytes"
	"encoding/json"
)

// Scan is a position in a JSON text from which the methods skip values.
type Scan struct {
	b []byte
	i int
}

// New returns a Scan at the beginning of b, which must not change.
func New(b []byte) *Scan { return &Scan{b: b} }

// Space skips white space.
func (s *Scan) Space() {
	for s.i < len(s.b) && (s.b[s.i] == ' ' || s.b[s.i] == '\n' || s.b[s.i] == '\t' || s.b[s.i] == '\r') {
		s.i++
	}
}

// Take skips the next byte if it is equal to the given one, and reports whether it was.
func (s *Scan) Take(c byte) bool {
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

// Str skips a string and returns the bytes between its quotes, or nil if the next value is not a string. simple reports
// whether the string has no escapes.
func (s *Scan) Str() (text []byte, simple bool) {
	if !s.Take('"') {
		return nil, false
	}
	from, quote := s.i, s.i-1
	simple = true
	for {
		if quote < s.i {
			n := bytes.IndexByte(s.b[s.i:], '"')
			if n < 0 {
				return nil, false
			}
			quote = s.i + n
		}
		k := bytes.IndexByte(s.b[s.i:quote], '\\')
		if k < 0 {
			s.i = quote + 1
			return s.b[from:quote:quote], simple
		}
		simple = false
		if s.i += k + 2; s.i > len(s.b) {
			return nil, false
		}
	}
}

// Skip skips any value, and reports whether it found the end of the value. It only counts brackets, and does not check
// the value's syntax.
func (s *Scan) Skip() bool {
	depth := 0
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case '"':
			if text, _ := s.Str(); text == nil {
				return false
			}
			if depth == 0 {
				return true
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				s.i++
				return true
			}
			if depth < 0 {
				return true // the end of the enclosing value
			}
		case ',':
			if depth == 0 {
				return true
			}
		}
		s.i++
	}
	return false
}

// Unescape decodes a JSON string, from its text without the quotes, and appends the content to dst. It returns false if
// an escape in the text is not valid.
func Unescape(dst, b []byte) ([]byte, bool) {
	const from, to = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	for len(b) > 0 {
		n := bytes.IndexByte(b, '\\')
		if n < 0 {
			return append(dst, b...), true
		}
		dst = append(dst, b[:n]...)
		if b = b[n+1:]; len(b) == 0 {
			return dst, false
		}
		if k := bytes.IndexByte([]byte(from), b[0]); k >= 0 {
			dst, b = append(dst, to[k]), b[1:]
			continue
		}
		// \u is rare enough for the general decoder.
		end := 5
		if len(b) >= 11 && b[1]|0x20 == 'd' && b[2] >= '8' && b[5] == '\\' && b[6] == 'u' {
			end = 11
		}
		if len(b) < end {
			return dst, false
		}
		var s string
		if json.Unmarshal(append(append([]byte(`"\`), b[:end]...), '"'), &s) != nil {
			return dst, false
		}
		dst, b = append(dst, s...), b[end:]
	}
	return dst, true
}
