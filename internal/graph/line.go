package graph

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/varve-db/varve/memstore"
)

// Line is a line of the file of the reference server for MCP memory graphs: an entity or a relation.
type Line struct {
	Entity   *Entity
	Relation *Relation
	Extra    map[string]any // the other members
}

// ErrNoLine means that a line is JSON, but neither an entity nor a relation.
var ErrNoLine = errors.New("neither an entity nor a relation")

// ParseLine parses a line in the same way as JavaScript parses JSON: of members with the same name the last one is
// used, and half a surrogate pair becomes U+FFFD.
func ParseLine(line []byte) (Line, error) {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return Line{}, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Line{}, fmt.Errorf("data after the JSON at byte %d", dec.InputOffset())
	}
	members, ok := v.(map[string]any)
	if !ok {
		return Line{}, fmt.Errorf("%w: not an object", ErrNoLine)
	}
	kind, typed := members["type"]
	name, named := members["name"].(string)
	from, isFrom := members["from"].(string)
	to, isTo := members["to"].(string)
	_, list := members[memberObservations].([]any)
	entity := kind == "entity" || !typed && named && has(members, memberType) && list
	relation := kind == "relation" || !typed && isFrom && isTo && has(members, memberRelation)
	switch {
	case entity && named:
		e := Entity{Name: name, Type: text(members[memberType])}
		if o, ok := members[memberObservations].([]any); ok {
			for _, o := range o {
				e.Observations = append(e.Observations, text(o))
			}
		} else if has(members, memberObservations) {
			return Line{}, fmt.Errorf("%w: the observations are not a list", ErrNoLine)
		}
		return Line{Entity: &e, Extra: extra(members, "name", memberType, memberObservations)}, nil
	case relation && isFrom && isTo:
		r := Relation{From: from, To: to, Type: text(members[memberRelation])}
		return Line{Relation: &r, Extra: extra(members, memberFrom, memberTo, memberRelation)}, nil
	}
	return Line{}, ErrNoLine
}

func has(members map[string]any, name string) bool { _, ok := members[name]; return ok }

func extra(members map[string]any, known ...string) map[string]any {
	for _, name := range append(known, "type") {
		delete(members, name)
	}
	return members
}

// text returns a string unchanged, "" for null, and the JSON text of any other value.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case nil:
		return ""
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// ID returns the id of the memory that represents the line.
func (l *Line) ID() string {
	if l.Entity != nil {
		return l.Entity.ID()
	}
	return l.Relation.ID()
}

// Memory returns the memory that represents the line. Its timestamp is t.
func (l *Line) Memory(t time.Time) memstore.Memory {
	if l.Entity != nil {
		return l.Entity.Memory(t, l.Extra)
	}
	return l.Relation.Memory(t, l.Extra)
}

// AppendLine appends the line that represents a memory, without a line feed. ok is false if the memory is neither an
// entity nor a relation.
func AppendLine(dst []byte, m *memstore.Memory) (_ []byte, ok bool, err error) {
	var of []any
	if e, ok := EntityOf(m); ok {
		of = []any{"type", "entity", "name", e.Name, memberType, e.Type, memberObservations, e.Observations}
	} else if r, ok := RelationOf(m); ok {
		of = []any{"type", "relation", memberFrom, r.From, memberTo, r.To, memberRelation, r.Type}
	} else {
		return dst, false, nil
	}
	if more, ok := m.Metadata[memberExtra].(map[string]any); ok {
		for _, name := range slices.Sorted(maps.Keys(more)) {
			of = append(of, name, more[name])
		}
	}
	sep := byte('{')
	for i := 0; i < len(of); i += 2 {
		dst = append(dst, sep)
		sep = ','
		if dst, err = jsontext.AppendQuote(dst, of[i].(string)); err != nil {
			return dst, true, err
		}
		dst = append(dst, ':')
		if dst, err = appendValue(dst, of[i+1]); err != nil {
			return dst, true, err
		}
	}
	return append(dst, '}'), true, nil
}

// appendValue encodes a value in the same way as JSON.stringify: it does not escape characters for HTML.
func appendValue(dst []byte, v any) (_ []byte, err error) {
	switch v := v.(type) {
	case string:
		return jsontext.AppendQuote(dst, v)
	case []string:
		dst = append(dst, '[')
		for i, s := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = jsontext.AppendQuote(dst, s); err != nil {
				return dst, err
			}
		}
		return append(dst, ']'), nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return dst, err
	}
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...), nil
}
