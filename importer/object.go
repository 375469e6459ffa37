package importer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// object is a JSON object: its text, and those members that show the kind of the record.
type object struct {
	text      []byte // text of the whole object
	id        string // the id, "" if the object has no id
	idMember  bool   // there is a member "id", of any type
	idText    bool   // the id is a string that is not empty
	content   bool   // there is a member content or text that is a string
	embedding bool
	bare      bool     // there is no embedding, or an empty one
	grouping  bool     // there is a member assembly_id or memory_ids
	group     string   // the value of assembly_id, "" if it is not a string
	memories  bool     // a member "memories" that is an object: a session
	names     []string // names of all members
}

// isAssembly reports whether the object is an assembly. A memory may have an assembly_id too: that
// of the assembly to which it belongs.
func (o *object) isAssembly() bool { return o.grouping && !o.content }

// deleted reports whether the object is a memory that OpenMemory has marked as deleted.
func (o *object) deleted() bool {
	return slices.Contains(o.names, "state") &&
		(slices.Contains(o.names, "category_ids") || slices.Contains(o.names, "categories")) &&
		fieldsOf(o.text).text("state") == "deleted"
}

var errNoObject = errors.New("not one JSON object")

var bom = []byte("\xef\xbb\xbf")

// parse parses text that is exactly one JSON object. It corrects deviations that Python's json
// module writes or reads, and returns a description of each.
func parse(raw []byte) (*object, []string, error) {
	text, isBOM := bytes.CutPrefix(raw, bom)
	var mends []string
	if isBOM {
		mends = append(mends, "a byte order mark was dropped")
	}
	o, err := look(text)
	if err == nil {
		return o, mends, nil
	}
	mended, more := mend(text)
	if len(more) == 0 {
		return nil, nil, whatIsWrong(raw, err)
	}
	if o, again := look(mended); again == nil {
		return o, append(mends, more...), nil
	}
	return nil, nil, whatIsWrong(raw, err)
}

func whatIsWrong(raw []byte, err error) error {
	switch trimmed := bytes.TrimSpace(raw); {
	case len(raw) == 0:
		return errors.New("empty file")
	case len(trimmed) == 0 || len(bytes.Trim(raw, "\x00")) == 0:
		return fmt.Errorf("the file has only white space or zeros (%d bytes)", len(raw))
	}
	return err
}

// look validates text, which must be one JSON object, and returns it as an object: with the names of all members, and
// the members that show what kind of record the object is.
func look(text []byte) (*object, error) {
	o := &object{text: text, bare: true}
	err := members(text, func(name string, val jsontext.Value) error {
		o.names = append(o.names, name)
		switch name {
		case "id":
			o.idMember = true
			switch val.Kind() {
			case '"':
				o.id, o.idText = unquote(val), len(val) > 2
			case '0':
				o.id = string(val)
			}
		case "content", "text":
			o.content = o.content || val.Kind() == '"'
		case "embedding":
			o.embedding = val.Kind() != 'n'
			o.bare = !o.embedding || val.Kind() == '[' && len(bytes.Trim(val, "[] \t\r\n")) == 0
		case "assembly_id":
			o.grouping = true
			if val.Kind() == '"' {
				o.group = unquote(val)
			}
		case "memory_ids":
			o.grouping = true
		case "memories":
			o.memories = val.Kind() == '{'
		}
		return nil
	})
	return o, err
}

// members calls f for each member of text, which must be exactly one object.
func members(text []byte, f func(name string, val jsontext.Value) error, opts ...jsontext.Options) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(text), opts...)
	if k := dec.PeekKind(); k != '{' && k != 0 {
		return fmt.Errorf("%w: %s", errNoObject, k)
	}
	if _, err := dec.ReadToken(); err != nil {
		return clip(err)
	}
	for dec.PeekKind() == '"' {
		tok, err := dec.ReadToken()
		if err != nil {
			return clip(err)
		}
		name := tok.String()
		val, err := dec.ReadValue()
		if err != nil {
			return clip(err)
		}
		if err := f(name, val); err != nil {
			return err
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return clip(err)
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: more data follows at byte %d", errNoObject, dec.InputOffset())
	}
	return nil
}

// clip returns the position and cause of a syntax error, without the JSON pointer, which can be
// very long.
func clip(err error) error {
	var bad *jsontext.SyntacticError
	if errors.As(err, &bad) {
		return fmt.Errorf("invalid JSON at byte %d: %w", bad.ByteOffset, bad.Err)
	}
	return err
}

func unquote(val jsontext.Value) string {
	out, err := jsontext.AppendUnquote(nil, val)
	if err != nil {
		return ""
	}
	return string(out)
}

func quote(s string) []byte {
	// Invalid characters are replaced; the error only reports that.
	out, _ := jsontext.AppendQuote(nil, s)
	return out
}

// withID returns the text of the object with this id, as a string, in the member id. If the object has this id
// already, its text is returned unchanged. The values of the other members never change.
func (o *object) withID(id string) []byte {
	if o.idText && o.id == id {
		return o.text
	}
	return o.with("id", id, o.idMember)
}

// with returns the text of the object with the string member name set to value, as the first member. there is true if
// the object has a member of this name already: with then removes that member.
func (o *object) with(name, value string, there bool) []byte {
	head := append(append(append([]byte{'{'}, quote(name)...), ':'), quote(value)...)
	if !there {
		rest := bytes.TrimLeft(o.text, " \t\r\n")[1:]
		if bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte("}")) {
			return append(head, '}')
		}
		return append(append(head, ','), rest...)
	}
	out := head
	// This cannot fail: look has parsed the text.
	_ = members(o.text, func(other string, val jsontext.Value) error {
		if other != name {
			out = member(out, other, val)
		}
		return nil
	})
	return append(out, '}')
}

// withValue returns the text of an object with a member set to a value: in the position of an
// existing member of that name, otherwise at the end.
func withValue(text []byte, name string, val []byte) []byte {
	out, there := []byte{'{'}, false
	// This cannot fail: look has parsed the text.
	_ = members(text, func(other string, old jsontext.Value) error {
		if other == name {
			old, there = val, true
		}
		out = member(out, other, old)
		return nil
	})
	if !there {
		out = member(out, name, val)
	}
	return append(out, '}')
}

// member appends a member to an object under construction.
func member(out []byte, name string, val []byte) []byte {
	if len(out) > 0 && out[len(out)-1] != '{' {
		out = append(out, ',')
	}
	out = append(out, quote(name)...)
	out = append(out, ':')
	return append(out, val...)
}
