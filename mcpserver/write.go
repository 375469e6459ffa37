package mcpserver

import (
	"strconv"
	"unicode/utf8"

	"github.com/varve-db/varve/internal/graph"
)

// writer writes JSON as JSON.stringify(value, null, 2) does, or without white space. The caller
// must write well-formed JSON; writer does not check.
type writer struct {
	b      []byte
	pretty bool
	depth  int
	filled bool         // the open array or object has at least one element
	sink   func([]byte) // receives the output in pieces; nil: all output stays in b
}

// piece is the approximate size in bytes of the pieces that sink receives.
const piece = 32 << 10

func (w *writer) pass() {
	if w.sink != nil && len(w.b) >= piece {
		w.sink(w.b)
		w.b = w.b[:0]
	}
}

// quote writes s as a JSON string, in quotes and with escapes.
func (w *writer) quote(s string) {
	if w.sink == nil || len(s) <= piece {
		w.b = appendString(w.b, s)
		return
	}
	w.b = append(w.b, '"')
	for s != "" {
		n := min(len(s), piece)
		for n < len(s) && n > piece-utf8.UTFMax && !utf8.RuneStart(s[n]) {
			n--
		}
		from := len(w.b)
		w.b = appendString(w.b, s[:n])
		w.b = append(w.b[:from], w.b[from+1:len(w.b)-1]...)
		s = s[n:]
		w.pass()
	}
	w.b = append(w.b, '"')
}

func (w *writer) open(c byte) {
	w.b = append(w.b, c)
	w.depth++
	w.filled = false
}

func (w *writer) close(c byte) {
	w.depth--
	if w.filled {
		w.line()
	}
	w.b = append(w.b, c)
	w.filled = true
}

func (w *writer) line() {
	if !w.pretty {
		return
	}
	w.b = append(w.b, '\n')
	for range w.depth {
		w.b = append(w.b, ' ', ' ')
	}
}

// next begins the next element of an array or object: it writes the comma and the white space that precede the
// element.
func (w *writer) next() {
	w.pass()
	if w.filled {
		w.b = append(w.b, ',')
	}
	w.line()
	w.filled = true
}

// member begins a member of an object: it writes the name.
func (w *writer) member(name string) {
	w.next()
	w.b = append(appendString(w.b, name), ':')
	if w.pretty {
		w.b = append(w.b, ' ')
	}
}

func (w *writer) text(name, value string) {
	w.member(name)
	w.quote(value)
}

func (w *writer) texts(name string, values []string) {
	w.member(name)
	w.open('[')
	for _, v := range values {
		w.next()
		w.quote(v)
	}
	w.close(']')
}

func (w *writer) flag(name string, value bool) {
	w.member(name)
	w.b = strconv.AppendBool(w.b, value)
}

// score writes a member whose value is a number, rounded to three significant digits.
func (w *writer) score(name string, value float64) {
	w.member(name)
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(value, 'g', 3, 64), 64)
	w.b = strconv.AppendFloat(w.b, rounded, 'f', -1, 64)
}

func (w *writer) entity(e *graph.Entity) {
	w.next()
	w.open('{')
	w.text("name", e.Name)
	w.text("entityType", e.Type)
	w.texts("observations", e.Observations)
	w.close('}')
}

func (w *writer) relation(r *graph.Relation) {
	w.next()
	w.open('{')
	w.text("from", r.From)
	w.text("to", r.To)
	w.text("relationType", r.Type)
	w.close('}')
}

// list writes an array; the function one writes each item.
func list[T any](w *writer, items []T, one func(*writer, *T)) {
	w.open('[')
	for i := range items {
		one(w, &items[i])
	}
	w.close(']')
}

// found has the entities and relations that a query about the graph has found.
type found struct {
	entities  []*entity
	relations []*relation
	bytes     int  // minimum number of bytes that the found entities and relations take in an answer
	over      bool // the answer would exceed its limit, so found is empty
}

func (f *found) addEntity(e *entity) {
	n := len(e.Name) + len(e.Type)
	for _, o := range e.Observations {
		n += len(o)
	}
	if f.fits(n) {
		f.entities = append(f.entities, e)
	}
}

func (f *found) addRelation(r *relation) {
	if f.fits(len(r.From) + len(r.To) + len(r.Type)) {
		f.relations = append(f.relations, r)
	}
}

// fits adds an entity or relation with this many bytes of text to the size of the answer, and reports whether the size
// is still within the limit. An answer contains the text twice, in two objects with their member names.
func (f *found) fits(text int) bool {
	const names = 100
	if f.bytes += 2*text + names; f.bytes > maxAnswer {
		f.entities, f.relations, f.over = nil, nil, true
	}
	return !f.over
}

func (f *found) write(w *writer) {
	w.open('{')
	w.member("entities")
	w.open('[')
	for _, e := range f.entities {
		w.entity(&e.Entity)
	}
	w.close(']')
	w.member("relations")
	w.open('[')
	for _, r := range f.relations {
		w.relation(&r.Relation)
	}
	w.close(']')
	w.close('}')
}

// appendEscaped appends text, escaped as the content of a JSON string without quotes.
func appendEscaped(b, text []byte) []byte {
	from := 0
	for i, c := range text {
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, text[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		default:
			const hex = "0123456789abcdef"
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(b, text[from:]...)
}

// escapedLen returns the number of bytes that appendEscaped would append.
func escapedLen(text []byte) int {
	n := len(text)
	for _, c := range text {
		switch {
		case c == '"' || c == '\\' || c == '\n':
			n++
		case c < ' ':
			n += 5
		}
	}
	return n
}
