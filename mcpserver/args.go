package mcpserver

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// args are the decoded arguments of a call, which match the shape of the tool's input.
type args map[string]any

// arguments decodes and checks the arguments of a call in the way JavaScript would: if a name occurs twice, the last
// value is used, and half of a surrogate pair becomes U+FFFD.
func (t *tool) arguments(raw json.RawMessage) (args, error) {
	if !t.hints.lenient {
		return t.strict(raw)
	}
	var v any = map[string]any{}
	if len(raw) > 0 {
		var err error
		if v, err = t.in.decode(decoder(raw)); err != nil {
			return nil, fmt.Errorf("cannot parse the arguments of %s: %w", t.name, err)
		}
	}
	if lines := t.in.check(v, false, "", nil); lines != nil {
		return nil, fmt.Errorf("MCP error -32602: Input validation error: Invalid arguments for tool %s: %s", t.name,
			strings.Join(lines, "\n"))
	}
	return v.(map[string]any), nil
}

// decode decodes a value. If the value has another kind than the shape requires, decode keeps only the kind, for the
// error message. It skips the members of an object that the shape does not have.
func (s *shape) decode(d *jsontext.Decoder) (any, error) {
	switch kind := d.PeekKind(); {
	case kind == 'n':
		return nil, d.SkipValue()
	case kind == 't' || kind == 'f':
		t, err := d.ReadToken()
		return err == nil && t.Bool(), err
	case kind == '"':
		if s.kind != "string" {
			return "", d.SkipValue()
		}
		t, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		return t.String(), nil
	case kind == '0':
		v, err := d.ReadValue()
		if s.expects() != "number" {
			return json.Number(""), err
		}
		return json.Number(v), err
	case kind == '[' && s.kind != "array":
		return []any(nil), d.SkipValue()
	case kind == '[':
		return s.decodeArray(d)
	case kind == '{' && s.kind != "object":
		return map[string]any(nil), d.SkipValue()
	case kind == '{':
		return s.decodeObject(d)
	}
	_, err := d.ReadToken()
	return nil, err
}

func (s *shape) decodeArray(d *jsontext.Decoder) (any, error) {
	list := []any{}
	_, err := d.ReadToken()
	for err == nil && d.PeekKind() != ']' {
		var v any
		if v, err = s.items.decode(d); err == nil {
			list = append(list, v)
		}
	}
	if err == nil {
		_, err = d.ReadToken()
	}
	return list, err
}

// mostUnknown is the maximum number of unknown names that an error message lists. longestProp is the maximum length of
// a name or value in an error message.
const mostUnknown, longestProp = 16, 64

func (s *shape) decodeObject(d *jsontext.Decoder) (any, error) {
	members := map[string]any{}
	_, err := d.ReadToken()
	for err == nil && d.PeekKind() != '}' {
		var name jsontext.Token
		if name, err = d.ReadToken(); err != nil {
			break
		}
		p := s.prop(name.String())
		if p == nil {
			if s.closed && len(members) < len(s.props)+mostUnknown {
				unknown, _ := cut(name.String(), longestProp)
				members[strings.Clone(unknown)] = nil
			}
			err = d.SkipValue()
			continue
		}
		var v any
		if v, err = p.shape.decode(d); err == nil {
			members[p.name] = v
		}
	}
	if err == nil {
		_, err = d.ReadToken()
	}
	return members, err
}

func (s *shape) prop(name string) *prop {
	for i := range s.props {
		if s.props[i].name == name {
			return &s.props[i]
		}
	}
	return nil
}

func (a args) text(name string) string {
	s, _ := a[name].(string)
	return s
}

func (a args) number(name string, otherwise int) int {
	if n, ok := a[name].(json.Number); ok {
		if i, ok := parseInteger(n); ok {
			return int(i)
		}
	}
	return otherwise
}

func (a args) float(name string) float64 {
	n, _ := a[name].(json.Number)
	f, _ := n.Float64()
	return f
}

func (a args) flag(name string) bool {
	b, _ := a[name].(bool)
	return b
}

func (a args) texts(name string) []string { return texts(a[name]) }

// objects returns the elements of the argument with this name, which is a list of objects. Each element has the
// members of one object.
func (a args) objects(name string) []args {
	list, _ := a[name].([]any)
	all := make([]args, len(list))
	for i, o := range list {
		all[i] = o.(map[string]any)
	}
	return all
}

func texts(v any) []string {
	list, _ := v.([]any)
	all := make([]string, len(list))
	for i, s := range list {
		all[i] = s.(string)
	}
	return all
}
