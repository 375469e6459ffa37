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

// shape describes the values of an argument: clients get it as JSON Schema, and their input is
// checked against it, with messages in the words of the reference server's validator (zod 4).
type shape struct {
	kind   string // kind of value, as in JSON Schema: string, array, object, boolean or integer
	about  string
	items  *shape
	props  []prop
	enum   []string
	lowest *int
	most   *int
	closed bool // the object must have no members other than props
	free   bool // the object may have any members
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
func (s *shape) markClosed() *shape    { s.closed = true; return s }
func may(name string, s *shape) prop   { return prop{name: name, shape: s, optional: true} }
func integer(about string, from, to int) *shape {
	return &shape{kind: "integer", about: about, lowest: &from, most: &to}
}
func (s *shape) described(about string) *shape { c := *s; c.about = about; return &c }
func oneOf(about string, values ...string) *shape {
	return &shape{kind: "string", about: about, enum: values}
}

// schema returns the JSON Schema of a tool's input or, if output is set, of its output. The schema of an output
// forbids members that the shape does not have.
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
		if s.free {
			break
		}
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

// maxLines is the maximum number of faults that are reported to a client.
const maxLines = 1000

// check appends one line to lines for each fault in the value v, which is at path. If v is nil, the value is null or,
// if missing is set, absent.
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
		members, _ := v.(map[string]any)
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
		n, ok := parseInteger(v.(json.Number))
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
			lines = append(lines, fmt.Sprintf("Invalid option: expected one of \"%s\"%s",
				strings.Join(s.enum, `"|"`), at))
		}
	}
	return lines
}

// unknown returns one line for each member of the value that the shape does not have, at most maxLines lines.
// location is the text that names the location of the value in the line, such as " at path"; it is "" for the
// top-level value.
func (s *shape) unknown(members map[string]any, location string) (lines []string) {
	var names []string
	for _, p := range s.props {
		names = append(names, p.name)
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if s.prop(name) == nil && len(lines) < maxLines {
			lines = append(lines, fmt.Sprintf("Unrecognized key: %s%s; the keys are %s", appendString(nil, name),
				location, strings.Join(names, ", ")))
		}
	}
	return lines
}

// parseInteger returns the value of a number that is an integer, in any notation: 1000, 1000.0, 1e3. As in
// JavaScript, a number beyond 2^53 that is not written as plain digits does not count as an integer.
func parseInteger(n json.Number) (int64, bool) {
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

// kindOf returns the JavaScript type of v. For nil it returns "undefined" if missing is set, and "null" otherwise.
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

// appendString appends a string to b in the form that JSON.stringify writes.
func appendString(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s) // an error only means that invalid UTF-8 was replaced
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
