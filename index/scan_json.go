package index

import (
	"bytes"
	"strconv"
	"unicode/utf8"
	"unsafe"
)

// scanner reads JSON text that has no white space. After the first error it does not advance.
type scanner struct {
	b   []byte
	i   int
	bad string
}

func (s *scanner) fail(msg string) {
	if s.bad == "" {
		s.bad = msg
	}
}

// take consumes c if it is the next byte, and reports whether it was.
func (s *scanner) take(c byte) bool {
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

func (s *scanner) need(c byte) {
	if !s.take(c) {
		s.fail("missing " + string(rune(c)))
	}
}

// str reads a string. The result is a part of the line, or a copy if the string has escapes.
func (s *scanner) str() []byte {
	s.need('"')
	if s.bad != "" {
		return nil
	}
	from, ascii := s.i, byte(0)
	for s.i < len(s.b) {
		switch c := s.b[s.i]; {
		case c == '"':
			v := s.b[from:s.i]
			if ascii >= utf8.RuneSelf && !utf8.Valid(v) {
				s.fail("not valid UTF-8")
				return nil
			}
			s.i++
			return v
		case c == '\\':
			return s.unescape(from)
		case c < 0x20:
			s.fail("a control character in a string")
			return nil
		default:
			ascii |= c
		}
		s.i++
	}
	s.fail("a string without an end")
	return nil
}

// unescape reads the rest of a string that has an escape, and returns the whole string without escapes. from is the
// index at which the string begins, and the scanner is at the first escape.
func (s *scanner) unescape(from int) []byte {
	v := append(make([]byte, 0, 2*(s.i-from)+16), s.b[from:s.i]...)
	for s.i < len(s.b) {
		c := s.b[s.i]
		s.i++
		switch {
		case c == '"':
			if !utf8.Valid(v) {
				s.fail("not valid UTF-8")
				return nil
			}
			return v
		case c < 0x20:
			s.fail("a control character in a string")
			return nil
		case c != '\\':
			v = append(v, c)
		case s.i == len(s.b):
		default:
			if v = s.escape(v); s.bad != "" {
				return nil
			}
		}
	}
	s.fail("a string without an end")
	return nil
}

// escape appends the character of an escape; the caller has already consumed the backslash.
func (s *scanner) escape(v []byte) []byte {
	const from, to = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	c := s.b[s.i]
	s.i++
	if c != 'u' {
		k := bytes.IndexByte([]byte(from), c)
		if k < 0 {
			s.fail("an unknown escape")
			return v
		}
		return append(v, to[k])
	}
	r := s.hex4()
	if r >= 0xd800 && r < 0xdc00 && s.i+1 < len(s.b) && s.b[s.i] == '\\' && s.b[s.i+1] == 'u' {
		s.i += 2
		low := s.hex4()
		if low < 0xdc00 || low > 0xdfff {
			s.fail("half a surrogate pair")
			return v
		}
		return utf8.AppendRune(v, 0x10000+(r-0xd800)<<10+(low-0xdc00))
	}
	if r >= 0xd800 && r <= 0xdfff {
		s.fail("half a surrogate pair")
		return v
	}
	return utf8.AppendRune(v, r)
}

func (s *scanner) hex4() (r rune) {
	for range 4 {
		if s.i == len(s.b) {
			s.fail("an escape without an end")
			return 0
		}
		c := s.b[s.i]
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			s.fail("an escape with a digit that is not hexadecimal")
			return 0
		}
		r = r<<4 | rune(c)
		s.i++
	}
	return r
}

// number consumes a JSON number and returns its text.
func (s *scanner) number() []byte {
	from := s.i
	digits := func() {
		n := s.i
		for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
			s.i++
		}
		if s.i == n {
			s.fail("not a number")
		}
	}
	s.take('-')
	if !s.take('0') {
		digits()
	}
	if s.take('.') {
		digits()
	}
	if s.take('e') || s.take('E') {
		if !s.take('+') {
			s.take('-')
		}
		digits()
	}
	return s.b[from:s.i]
}

func (s *scanner) integer() int64 {
	neg := s.take('-')
	v := s.unsigned()
	limit := uint64(1<<63 - 1)
	if neg {
		limit++
	}
	if v > limit {
		s.fail("an integer that is too large")
	}
	if neg {
		return -int64(v)
	}
	return int64(v)
}

func (s *scanner) unsigned() (v uint64) {
	from := s.i
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		d := uint64(s.b[s.i] - '0')
		if v > (1<<64-1-d)/10 {
			s.fail("an integer that is too large")
			return 0
		}
		v = v*10 + d
		s.i++
	}
	if s.i == from || s.b[from] == '0' && s.i > from+1 {
		s.fail("not an integer")
	}
	return v
}

func (s *scanner) float() float64 {
	b := s.number()
	if s.bad != "" {
		return 0
	}
	// ParseFloat keeps its argument in errors only, which are not returned.
	f, err := strconv.ParseFloat(unsafe.String(unsafe.SliceData(b), len(b)), 64)
	if err != nil {
		s.fail("a number out of range")
	}
	return f
}

// maxDepth is the maximum nesting depth of a JSON value that skip accepts.
const maxDepth = 100

// skip consumes a JSON value of any type.
func (s *scanner) skip(depth int) {
	if s.bad != "" || s.i == len(s.b) || depth > maxDepth {
		s.fail("no value")
		return
	}
	switch c := s.b[s.i]; c {
	case '"':
		s.str()
	case '{', '[':
		s.i++
		end := c + 2 // the closing bracket in ASCII
		if s.take(end) {
			return
		}
		for s.bad == "" {
			if c == '{' {
				s.str()
				s.need(':')
			}
			s.skip(depth + 1)
			if s.take(end) {
				return
			}
			s.need(',')
		}
	case 't', 'f', 'n':
		for _, w := range []string{"true", "false", "null"} {
			if len(s.b)-s.i >= len(w) && string(s.b[s.i:s.i+len(w)]) == w {
				s.i += len(w)
				return
			}
		}
		s.fail("no value")
	default:
		s.number()
	}
}
