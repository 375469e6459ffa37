package diff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Parse decodes a JSON document as package json does, except for numbers: each becomes a json.Number, with its text
// unchanged.
func Parse(doc []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// Change is a JSON member that differs between two documents. From is nil if the first document does not have the
// member, To is nil if the second does not have it.
type Change struct {
	Path string           `json:"path"` // JSON pointer, RFC 6901
	From *json.RawMessage `json:"from,omitempty"`
	To   *json.RawMessage `json:"to,omitempty"`
}

var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1")

// Changes appends the differences between the values old and now to list. It compares objects member by member, and all
// other values, including lists, as a whole. path is the JSON pointer of the two values.
func Changes(list []Change, path string, old, now any) []Change {
	a, ok1 := old.(map[string]any)
	b, ok2 := now.(map[string]any)
	if !ok1 || !ok2 {
		if !reflect.DeepEqual(old, now) {
			list = append(list, Change{path, raw(old), raw(now)})
		}
		return list
	}
	names := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		at := path + "/" + pointerEscape.Replace(name)
		before, had := a[name]
		after, has := b[name]
		switch {
		case !had:
			list = append(list, Change{at, nil, raw(after)})
		case !has:
			list = append(list, Change{at, raw(before), nil})
		default:
			list = Changes(list, at, before, after)
		}
	}
	return list
}

func raw(v any) *json.RawMessage {
	r := json.RawMessage(compact(v))
	return &r
}

func compact(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "null" // cannot happen: the value was decoded from JSON
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// numbersPerLine is the number of list elements that share a line, so that an embedding does not take a thousand
// lines.
const numbersPerLine = 8

// Lines returns a value as lines that can be compared: members sorted by name, text of several
// lines on several lines, and lists of numbers with several per line.
func Lines(v any) []string {
	p := &printer{}
	p.value("", "", v, "")
	return p.lines
}

type printer struct{ lines []string }

func (p *printer) line(indent, s string) { p.lines = append(p.lines, indent+s) }

func (p *printer) value(indent, head string, v any, tail string) {
	deeper := indent + "  "
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			p.line(indent, head+"{}"+tail)
			return
		}
		p.line(indent, head+"{")
		for _, name := range slices.Sorted(maps.Keys(v)) {
			p.value(deeper, compact(name)+": ", v[name], ",")
		}
		p.line(indent, "}"+tail)
	case []any:
		if len(v) == 0 {
			p.line(indent, head+"[]"+tail)
			return
		}
		p.line(indent, head+"[")
		p.list(deeper, v)
		p.line(indent, "]"+tail)
	case string:
		parts := strings.SplitAfter(v, "\n")
		if n := len(parts); parts[n-1] == "" && n > 1 {
			parts = parts[:n-1]
		}
		for i, part := range parts {
			if i > 0 {
				head = strings.Repeat(" ", len(head))
			}
			end := ""
			if i == len(parts)-1 {
				end = tail
			}
			p.line(indent, head+compact(part)+end)
		}
	default:
		p.line(indent, head+compact(v)+tail)
	}
}

func (p *printer) list(indent string, v []any) {
	for len(v) > 0 {
		n := 0
		for n < len(v) && n < numbersPerLine {
			if _, ok := v[n].(json.Number); !ok {
				break
			}
			n++
		}
		if n == 0 {
			p.value(indent, "", v[0], ",")
			v = v[1:]
			continue
		}
		words := make([]string, n)
		for i := range words {
			words[i] = fmt.Sprint(v[i])
		}
		p.line(indent, strings.Join(words, ", ")+",")
		v = v[n:]
	}
}

// Same reports whether two documents are equal, ignoring white space and the order of members.
func Same(a, b []byte) (bool, error) {
	if bytes.Equal(a, b) {
		return true, nil
	}
	x, err := Parse(a)
	if err != nil {
		return false, err
	}
	y, err := Parse(b)
	return err == nil && reflect.DeepEqual(x, y), err
}
