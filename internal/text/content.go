package text

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// Content gives what stands in the top-level members "id" and "content" of a
// JSON document, without reading more of it than needed: in documents as the
// store writes them these come first. ok is false where it is not as simple as
// that (a member is missing, a name or the id has escapes, it is not JSON so far):
// then only the whole document tells. The results lie in doc, or in buf, which
// is returned grown.
func Content(doc, buf []byte) (id, content, grown []byte, ok bool) {
	s := scan{b: doc}
	s.space()
	if !s.take('{') {
		return nil, nil, buf, false
	}
	var raw []byte
	for id == nil || raw == nil {
		s.space()
		name, simple := s.str()
		if !simple {
			return nil, nil, buf, false
		}
		s.space()
		if !s.take(':') {
			return nil, nil, buf, false
		}
		s.space()
		switch string(name) {
		case "id":
			if id, simple = s.str(); !simple || id == nil {
				return nil, nil, buf, false
			}
		case "content":
			at := s.i
			if raw, simple = s.str(); raw == nil {
				return nil, nil, buf, false
			}
			if !simple {
				if buf, ok = unescape(buf[:0], doc[at+1:s.i-1]); !ok {
					return nil, nil, buf, false
				}
				raw = buf
			}
		default:
			if !s.skip() {
				return nil, nil, buf, false
			}
		}
		s.space()
		if !s.take(',') && (id == nil || raw == nil) {
			return nil, nil, buf, false
		}
	}
	return id, raw, buf, utf8.Valid(raw)
}

type scan struct {
	b []byte
	i int
}

func (s *scan) space() {
	for s.i < len(s.b) && (s.b[s.i] == ' ' || s.b[s.i] == '\n' || s.b[s.i] == '\t' || s.b[s.i] == '\r') {
		s.i++
	}
}

func (s *scan) take(c byte) bool {
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

// str steps over a string and gives what stands between its quotes, nil if there
// is none. simple: it has no escapes.
func (s *scan) str() (text []byte, simple bool) {
	if !s.take('"') {
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

// skip steps over any value; it counts brackets and believes the rest.
func (s *scan) skip() bool {
	depth := 0
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case '"':
			if text, _ := s.str(); text == nil {
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
				return true // the end of what contains the value
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

// unescape appends a JSON string without its quotes.
func unescape(dst, b []byte) ([]byte, bool) {
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
		// \u is rare enough for the general reader.
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
