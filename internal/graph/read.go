package graph

import (
	"time"
	"unicode/utf8"

	"github.com/varve-db/varve/internal/jsonskip"
)

// Node is the part of a memory that a graph needs.
type Node struct {
	Entity   *Entity // either Entity or Relation is set
	Relation *Relation
	At       time.Time // the timestamp of the memory
	Expires  time.Time
}

// Read decodes a node from the stored document of a memory of the graph. It decodes only what a node needs, which is
// several times as fast as decoding the memory. ok is false if the document is not as simple as the documents that this
// package writes. Then the caller must decode the memory, and use EntityOf and RelationOf.
func Read(id string, doc []byte) (n Node, ok bool) {
	r := reader{Scan: jsonskip.New(doc)}
	d := fields{ok: true}
	r.object(&d, func(name []byte) {
		switch string(name) {
		case "id":
			d.ok = d.ok && r.text(&d.ok) == id
		case "timestamp":
			n.At = r.time(&d.ok)
		case "expires_at":
			n.Expires = r.time(&d.ok)
		case "metadata":
			r.object(&d, func(name []byte) { r.metadata(&d, name) })
		default:
			d.ok = r.Skip() && d.ok
		}
	})
	switch {
	case !d.ok:
	case isEntityID(id):
		if d.has[0] && EntityID(d.key) == id {
			n.Entity = &Entity{Name: d.key, Type: d.kind, Observations: d.observations}
			return n, true
		}
	case IsRelationID(id):
		rel := Relation{From: d.from, To: d.to, Type: d.relation}
		if d.has == [4]bool{d.has[0], true, true, true} && rel.ID() == id {
			n.Relation = &rel
			return n, true
		}
	}
	return Node{}, false
}

// fields has the members of a memory's metadata that describe an entity or a relation.
type fields struct {
	ok                            bool    // all members read so far have a form that this reader handles
	has                           [4]bool // whether the member is present: key, from, to, relationType
	key, kind, from, to, relation string
	observations                  []string
}

type reader struct {
	*jsonskip.Scan
	buf []byte
}

func (r *reader) metadata(d *fields, name []byte) {
	one := func(i int, into *string) { *into, d.has[i] = r.text(&d.ok), true }
	switch string(name) {
	case "key":
		one(0, &d.key)
	case memberFrom:
		one(1, &d.from)
	case memberTo:
		one(2, &d.to)
	case memberRelation:
		one(3, &d.relation)
	case memberType:
		d.kind = r.text(&d.ok)
	case memberObservations:
		d.observations = r.texts(&d.ok)
	default:
		d.ok = r.Skip() && d.ok
	}
}

// object calls f for each member of an object, with the member's name. f must skip the member's value. object sets
// d.ok to false if it cannot read the object.
func (r *reader) object(d *fields, f func(name []byte)) {
	r.Space()
	if !r.Take('{') {
		d.ok = false
		return
	}
	for d.ok {
		r.Space()
		if r.Take('}') {
			return
		}
		name, simple := r.Str()
		r.Space()
		if d.ok = simple && r.Take(':'); !d.ok {
			return
		}
		r.Space()
		f(name)
		r.Space()
		if !r.Take(',') {
			d.ok = d.ok && r.Take('}')
			return
		}
	}
}

func (r *reader) text(ok *bool) string {
	raw, simple := r.Str()
	if raw == nil {
		*ok = false
		return ""
	}
	if !simple {
		if r.buf, simple = jsonskip.Unescape(r.buf[:0], raw); !simple {
			*ok = false
		}
		raw = r.buf
	}
	*ok = *ok && utf8.Valid(raw)
	return string(raw)
}

func (r *reader) texts(ok *bool) []string {
	list := []string{}
	if !r.Take('[') {
		*ok = false
		return nil
	}
	for r.Space(); *ok && !r.Take(']'); r.Space() {
		if list = append(list, r.text(ok)); !*ok {
			break
		}
		r.Space()
		if r.Take(',') {
			continue
		}
		*ok = r.Take(']')
		break
	}
	return list
}

// time reads a time in the form in which the store writes it. For any other text it sets *ok to false.
func (r *reader) time(ok *bool) time.Time {
	raw, simple := r.Str()
	t, err := time.Parse(time.RFC3339Nano, string(raw))
	if !simple || err != nil || raw[len(raw)-1] != 'Z' {
		*ok = false
	}
	return t
}
