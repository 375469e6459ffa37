package mcpserver

import (
	"strconv"

	"github.com/varve-db/varve/internal/graph"
)

// writer writes JSON as JSON.stringify(value, null, 2) does, or without any white
// space. What is written must be well-formed; it does not look.
type writer struct {
	b      []byte
	pretty bool
	depth  int
	filled bool // something stands in the array or object that is open
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

// next begins an element.
func (w *writer) next() {
	if w.filled {
		w.b = append(w.b, ',')
	}
	w.line()
	w.filled = true
}

// member begins a member of an object.
func (w *writer) member(name string) {
	w.next()
	w.b = append(appendString(w.b, name), ':')
	if w.pretty {
		w.b = append(w.b, ' ')
	}
}

func (w *writer) text(name, value string) {
	w.member(name)
	w.b = appendString(w.b, value)
}

func (w *writer) texts(name string, values []string) {
	w.member(name)
	w.open('[')
	for _, v := range values {
		w.next()
		w.b = appendString(w.b, v)
	}
	w.close(']')
}

func (w *writer) flag(name string, value bool) {
	w.member(name)
	w.b = strconv.AppendBool(w.b, value)
}

func (w *writer) number(name string, value float64) {
	w.member(name)
	w.b = strconv.AppendFloat(w.b, value, 'f', -1, 64)
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

// list writes an array.
func list[T any](w *writer, items []T, one func(*writer, *T)) {
	w.open('[')
	for i := range items {
		one(w, &items[i])
	}
	w.close(']')
}

// found is the answer to a question about the graph.
type found struct {
	entities  []*entity
	relations []*relation
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
