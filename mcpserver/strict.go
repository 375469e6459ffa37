package mcpserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/varve-db/varve/internal/human"
)

// strict decodes the arguments of a tool of this server's own groups. An unknown name is an error that suggests
// the nearest name of the tool, since a filter or a guard that is ignored would change more than was meant.
// null means that an argument is not given. A number or a boolean that is sent as text, and an array or an
// object that is sent as JSON text, is converted.
func (t *tool) strict(raw json.RawMessage) (args, error) {
	given, faults := args{}, []string(nil)
	if kind := rawKind(raw); kind == "object" {
		d := decoder(raw)
		_, err := d.ReadToken()
		for err == nil && d.PeekKind() == '"' {
			var name jsontext.Token
			var value jsontext.Value
			if name, err = d.ReadToken(); err != nil {
				break
			}
			called := name.String()
			if value, err = d.ReadValue(); err != nil {
				break
			}
			p := t.in.prop(called)
			switch {
			case p == nil:
				if len(faults) < mostUnknown {
					faults = append(faults, t.unknown(called))
				}
			case value.Kind() == 'n':
				delete(given, called)
			default:
				v, terr := p.shape.take(value)
				if terr != nil {
					faults = append(faults, called+": "+terr.Error())
					continue
				}
				given[p.name] = v
			}
		}
		if err != nil {
			return nil, fmt.Errorf("cannot parse the arguments of %s: %w", t.name, err)
		}
	}
	for _, p := range t.in.props {
		if _, there := given[p.name]; !there && !p.optional {
			faults = append(faults, p.name+": missing")
		}
	}
	if len(faults) == 0 {
		faults = t.in.check(map[string]any(given), false, "", nil)
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("%s: %s; nothing was done", t.name, strings.Join(faults, "; "))
	}
	return given, nil
}

// take decodes a value that is not null, and converts it to the kind that the shape requires if possible.
func (s *shape) take(value jsontext.Value) (any, error) {
	kind, text, given := value.Kind(), "", value
	if kind == '"' {
		b, err := jsontext.AppendUnquote(nil, value)
		if err != nil && !strings.Contains(err.Error(), "UTF-8") && b == nil {
			return nil, errors.New("not a text")
		}
		text = string(b)
	}
	switch s.kind {
	case "string":
		switch kind {
		case '"':
			return text, nil
		case '0':
			return string(value), nil
		}
	case "integer", "number":
		if kind == '"' {
			value = jsontext.Value(strings.TrimSpace(text))
			if value.IsValid() {
				kind = value.Kind()
			}
		}
		if kind == '0' {
			return json.Number(string(value)), nil
		}
	case "boolean":
		if kind == '"' {
			b, err := strconv.ParseBool(strings.ToLower(strings.TrimSpace(text)))
			if err == nil && len(strings.TrimSpace(text)) > 1 {
				return b, nil
			}
		} else if kind == 't' || kind == 'f' {
			return kind == 't', nil
		}
	case "array":
		return s.takeArray(value, kind, text)
	case "object":
		if v := jsontext.Value(text); kind == '"' && v.IsValid() {
			value, kind = v, v.Kind()
		}
		if kind == '{' {
			return anyOf(value)
		}
	}
	return nil, fmt.Errorf("expected %s, received %s", article(s.kind), clipped(string(given)))
}

func (s *shape) takeArray(value jsontext.Value, kind jsontext.Kind, text string) (any, error) {
	if kind == '"' {
		v := jsontext.Value(strings.TrimSpace(text))
		switch {
		case strings.HasPrefix(string(v), "[") && v.IsValid():
			value, kind = v, '['
		case text == "":
			return []any{}, nil
		case !strings.ContainsAny(text, ",;[]{}\n"):
			return []any{text}, nil
		}
	}
	if kind != '[' {
		return nil, fmt.Errorf(`expected a list such as ["a","b"], received %s`, clipped(string(value)))
	}
	list, d := []any{}, decoder(json.RawMessage(value))
	_, err := d.ReadToken()
	for err == nil && d.PeekKind() != ']' {
		var one jsontext.Value
		if one, err = d.ReadValue(); err == nil {
			var v any
			if v, err = s.items.take(one); err == nil {
				list = append(list, v)
			}
		}
	}
	return list, err
}

// anyOf decodes a JSON value of any kind. Numbers become json.Number, so that no digit is lost.
func anyOf(value jsontext.Value) (any, error) {
	if err := within(value); err != nil {
		return nil, err
	}
	d := json.NewDecoder(strings.NewReader(string(value)))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err
}

func article(kind string) string {
	switch kind {
	case "integer":
		return "a whole number"
	case "number":
		return "a number"
	case "boolean":
		return "true or false"
	case "object":
		return "an object"
	}
	return "a text"
}

// clipped returns the beginning of a value, for error messages.
func clipped(s string) string {
	if short, isCut := cut(s, longestProp); isCut {
		return short + "…"
	}
	return s
}

// sameAs maps names that other servers, memctl or the documents use for an argument to the name that the tools
// use.
var sameAs = map[string]string{
	"session_id": "session", "sessionid": "session", "conversation": "session", "thread": "session",
	"content": "text", "memory": "text", "fact": "text", "value": "text", "message": "text", "body": "text",
	"q": "query", "question": "query", "search": "query", "words": "query",
	"memory_id": "id", "uuid": "id", "name": "key", "title": "key", "type": "category", "kind": "category",
	"labels": "tags", "tag": "tags", "expires": "ttl", "expires_in": "ttl", "timestamp": "happened", "date": "happened",
	"when_happened": "happened", "from": "since", "after": "since", "to": "until", "before": "until",
	"max": "limit", "top_k": "limit",
	"k": "limit", "n": "limit", "count": "limit", "size": "limit", "page": "cursor", "next": "cursor", "offset": "cursor",
	"meta": "metadata", "pinned": "pin", "score": "importance", "priority": "importance", "max_tokens": "budget",
	"tokens": "budget", "topic": "task", "old_text": "old", "old_str": "old", "new_text": "new", "new_str": "new",
	"author": "writer", "client": "writer", "agent": "writer", "time": "when", "day": "when", "position": "version",
}

// unknown returns the text of the error for an argument name that the tool does not have.
func (t *tool) unknown(name string) string {
	names := make([]string, len(t.in.props))
	for i, p := range t.in.props {
		names[i] = p.name
	}
	msg := fmt.Sprintf("unknown argument %s", appendString(nil, clipped(name)))
	if near := nearest(name, names); near != "" {
		return fmt.Sprintf("%s → did you mean %s?", msg, near)
	}
	return fmt.Sprintf("%s; the arguments are %s", msg, strings.Join(names, ", "))
}

// nearest returns the element of names for which the mistyped name probably stands, or "" if no element is similar.
func nearest(name string, names []string) string {
	plain := strings.ToLower(strings.ReplaceAll(name, "-", "_"))
	for _, n := range names {
		if n == plain || n == plain+"s" || n+"s" == plain {
			return n
		}
	}
	if same := sameAs[plain]; slices.Contains(names, same) {
		return same
	}
	if len(plain) > longestProp {
		return ""
	}
	best, least := "", 4
	for _, n := range names {
		d := human.Distance(plain, n)
		if strings.HasPrefix(plain, n) || strings.HasPrefix(n, plain) && plain != "" {
			d = min(d, 2)
		}
		if d < least && d < len(n) {
			best, least = n, d
		}
	}
	return best
}

// object returns the argument with this name, which is an object. The caller may change the object.
func (a args) object(name string) map[string]any {
	m, _ := a[name].(map[string]any)
	return maps.Clone(m)
}
