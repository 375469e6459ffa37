package mcpserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// shape is what a value must look like: it is told to clients as JSON Schema, and
// what they send is judged by it, in the words that the reference server's
// validator (zod 4) has.
type shape struct {
	kind   string // of JSON Schema: string, array, object, boolean, integer
	about  string
	items  *shape
	props  []prop
	enum   []string
	lowest *int
	most   *int
	closed bool // it has no other members than props
}

type prop struct {
	name     string
	shape    *shape
	optional bool
}

func object(props ...prop) *shape      { return &shape{kind: "object", props: props} }
func array(items *shape) *shape        { return &shape{kind: "array", items: items} }
func str(about string) *shape          { return &shape{kind: "string", about: about} }
func needs(name string, s *shape) prop { return prop{name: name, shape: s} }
func (s *shape) only() *shape          { s.closed = true; return s }
func may(name string, s *shape) prop   { return prop{name: name, shape: s, optional: true} }
func integer(about string, from, to int) *shape {
	return &shape{kind: "integer", about: about, lowest: &from, most: &to}
}
func (s *shape) described(about string) *shape { c := *s; c.about = about; return &c }
func oneOf(about string, values ...string) *shape {
	return &shape{kind: "string", about: about, enum: values}
}

// schema is the JSON Schema of the whole of a tool's input or output. Outputs say
// that they have no other members.
func (s *shape) schema(output bool) json.RawMessage {
	b := []byte(`{"$schema":"http://json-schema.org/draft-07/schema#",`)
	return append(b, s.appendSchema(nil, output)[1:]...)
}

func (s *shape) appendSchema(b []byte, output bool) []byte {
	b = append(b, `{"type":"`...)
	b = append(append(b, s.kind...), '"')
	switch s.kind {
	case "array":
		b = s.items.appendSchema(append(b, `,"items":`...), output)
	case "object":
		b = append(b, `,"properties":{`...)
		var required []string
		for i, p := range s.props {
			if i > 0 {
				b = append(b, ',')
			}
			b = p.shape.appendSchema(append(appendString(b, p.name), ':'), output)
			if !p.optional {
				required = append(required, p.name)
			}
		}
		b = append(b, '}')
		if len(required) > 0 {
			b = appendStrings(append(b, `,"required":`...), required)
		}
		if output || s.closed {
			b = append(b, `,"additionalProperties":false`...)
		}
	}
	if s.enum != nil {
		b = appendStrings(append(b, `,"enum":`...), s.enum)
	}
	if s.lowest != nil {
		b = fmt.Appendf(b, `,"minimum":%d,"maximum":%d`, *s.lowest, *s.most)
	}
	if s.about != "" {
		b = appendString(append(b, `,"description":`...), s.about)
	}
	return append(b, '}')
}

// maxLines is of how many things that are wrong a client is told.
const maxLines = 1000

// check gives one line for each thing that is wrong, none where nothing is. v is
// nil for null; missing says that there is no value at all.
func (s *shape) check(v any, missing bool, path string, lines []string) []string {
	if len(lines) >= maxLines {
		return lines
	}
	at := ""
	if path != "" {
		at = " at " + path
	}
	if got := kindOf(v, missing); got != s.expects() {
		return append(lines, fmt.Sprintf("Invalid input: expected %s, received %s%s", s.expects(), got, at))
	}
	switch s.kind {
	case "array":
		for i, item := range v.([]any) {
			lines = s.items.check(item, false, fmt.Sprintf("%s[%d]", path, i), lines)
		}
	case "object":
		members := v.(map[string]any)
		if s.closed {
			lines = append(lines, s.unknown(members, at)...)
		}
		for _, p := range s.props {
			item, there := members[p.name]
			if !there && p.optional {
				continue
			}
			below := p.name
			if path != "" {
				below = path + "." + p.name
			}
			lines = p.shape.check(item, !there, below, lines)
		}
	case "integer":
		n, ok := whole(v.(json.Number))
		switch {
		case !ok:
			lines = append(lines, fmt.Sprintf("Invalid input: expected int, received number%s", at))
		case n < int64(*s.lowest):
			lines = append(lines, fmt.Sprintf("Too small: expected number to be >=%d%s", *s.lowest, at))
		case n > int64(*s.most):
			lines = append(lines, fmt.Sprintf("Too big: expected number to be <=%d%s", *s.most, at))
		}
	case "string":
		if s.enum != nil && !slices.Contains(s.enum, v.(string)) {
			lines = append(lines, fmt.Sprintf("Invalid option: expected one of \"%s\"%s", strings.Join(s.enum, `"|"`), at))
		}
	}
	return lines
}

// unknown gives a line for each member that is none of these.
func (s *shape) unknown(members map[string]any, at string) (lines []string) {
	var names []string
	for _, p := range s.props {
		names = append(names, p.name)
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if s.prop(name) == nil && len(lines) < maxLines {
			lines = append(lines, fmt.Sprintf("Unrecognized key: %s%s; there are %s", appendString(nil, name), at,
				strings.Join(names, ", ")))
		}
	}
	return lines
}

// whole is the integer that a number is, in whatever form: 1000, 1000.0, 1e3. Like
// JavaScript it knows none beyond 2^53.
func whole(n json.Number) (int64, bool) {
	if i, err := n.Int64(); err == nil {
		return i, true
	}
	f, err := n.Float64()
	return int64(f), err == nil && f == math.Trunc(f) && math.Abs(f) <= 1<<53
}

func (s *shape) expects() string {
	if s.kind == "integer" {
		return "number"
	}
	return s.kind
}

// kindOf is what JavaScript would call it.
func kindOf(v any, missing bool) string {
	switch v.(type) {
	case nil:
		if missing {
			return "undefined"
		}
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

// appendString writes a string as JSON.stringify does.
func appendString(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s) // the error says only that bytes were no UTF-8 and were replaced
	return b
}

func appendStrings(b []byte, list []string) []byte {
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, s)
	}
	return append(b, ']')
}
