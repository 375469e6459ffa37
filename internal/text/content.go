package text

import (
	"unicode/utf8"

	"github.com/varve-db/varve/internal/skim"
)

// Content gives what stands in the top-level members "id" and "content" of a
// JSON document, without reading more of it than needed: in documents as the
// store writes them these come first. ok is false where it is not as simple as
// that (a member is missing, a name or the id has escapes, it is not JSON or UTF-8 so far):
// then only the whole document tells. The results lie in doc, or in buf, which
// is returned grown.
func Content(doc, buf []byte) (id, content, grown []byte, ok bool) {
	s := skim.New(doc)
	s.Space()
	if !s.Take('{') {
		return nil, nil, buf, false
	}
	var raw []byte
	for id == nil || raw == nil {
		s.Space()
		name, simple := s.Str()
		if !simple {
			return nil, nil, buf, false
		}
		s.Space()
		if !s.Take(':') {
			return nil, nil, buf, false
		}
		s.Space()
		switch string(name) {
		case "id":
			if id, simple = s.Str(); !simple || id == nil {
				return nil, nil, buf, false
			}
		case "content":
			if raw, simple = s.Str(); raw == nil {
				return nil, nil, buf, false
			}
			if !simple {
				if buf, ok = skim.Unescape(buf[:0], raw); !ok {
					return nil, nil, buf, false
				}
				raw = buf
			}
		default:
			if !s.Skip() {
				return nil, nil, buf, false
			}
		}
		s.Space()
		if !s.Take(',') && (id == nil || raw == nil) {
			return nil, nil, buf, false
		}
	}
	return id, raw, buf, utf8.Valid(id) && utf8.Valid(raw)
}
