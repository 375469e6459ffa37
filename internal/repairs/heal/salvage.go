package heal

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/repairs/verify"
	"github.com/varve-db/varve/repair"
)

// salvaged returns the readable part of a damaged document: the complete members of the JSON object, and the
// readable beginning of a string that is cut off. If a merge has marked conflicts, it uses the first side of
// each. id is the id of the document; "" if only the text has the id. salvaged fails if nothing is worth
// keeping: no id, or neither content nor metadata, or, for an assembly, neither members nor a name.
func salvaged(v *verify.Run, k *kind.Kind, data []byte, id string) (kind.Content, []byte, error) {
	if k.Opaque { // such a document is readable as a whole or not at all
		c, err := v.Decode(k, k.FileName(id), data)
		return c, data, err
	}
	text, err := asFarAsItGoes(firstSide(data), k == kind.Assemblies)
	if err != nil {
		return kind.Content{}, nil, err
	}
	c, err := k.Decode(text,
		kind.DecodeOptions{Limits: v.Source.Limits, Location: v.Source.Location, IDOptional: id != ""})
	if err != nil {
		return kind.Content{}, nil, err
	}
	if c.ID == "" {
		c.ID = id
	}
	if id != "" && c.ID != id {
		return kind.Content{}, nil, fmt.Errorf("%w: the file contains id %s, not %s", errs.ErrInvalid,
			human.Quote(c.ID), human.Quote(id))
	}
	if a := c.Group; a != nil {
		if a.ID = c.ID; a.Name == "" && len(a.MemoryIDs) == 0 {
			return kind.Content{}, nil, fmt.Errorf("%w: neither a name nor members can be read", errs.ErrInvalid)
		}
		doc, err := a.Encode(assembly.Limits{AssemblyBytes: v.Source.Limits.Assembly.AssemblyBytes,
			Members: kind.MembersMost})
		return c, doc, err
	}
	m := c.Memory
	if m == nil { // only a memory has a member to mark it as incomplete
		return kind.Content{}, nil, fmt.Errorf("%w: a %s can be kept only if its document can be read completely",
			errs.ErrInvalid, k.Noun)
	}
	if m.ID = c.ID; m.Content == "" && len(m.Metadata) == 0 {
		return kind.Content{}, nil, fmt.Errorf("%w: neither content nor metadata can be read", errs.ErrInvalid)
	}
	if m.Metadata == nil {
		m.Metadata = map[string]any{}
	}
	m.Metadata[repair.PartialKey] = true
	doc, err := m.Encode(v.Source.Limits.Memory)
	return c, doc, err
}

// asFarAsItGoes returns a complete JSON object made from the part of data before the first syntax error. If marked is
// true, the object gets the member repair.PartialKey with the value true. It returns an error if data is not an
// object, or if no member can be read.
func asFarAsItGoes(data []byte, marked bool) ([]byte, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	d := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true))
	if k := d.PeekKind(); k != '{' {
		return nil, fmt.Errorf("%w: not a JSON object", errs.ErrInvalid)
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	out := []byte("{")
	var names []string
	member := func(name string, value []byte) {
		if slices.Contains(names, name) {
			return
		}
		if names = append(names, name); len(names) > 1 {
			out = append(out, ',')
		}
		out, _ = jsontext.AppendQuote(out, name)
		out = append(append(out, ':'), value...)
	}
	for d.PeekKind() == '"' {
		t, err := d.ReadToken()
		if err != nil {
			break
		}
		name := t.String()
		from := d.InputOffset()
		value, err := d.ReadValue()
		if err == nil {
			member(name, value)
			continue
		}
		if rest, ok := brokenString(data[from:]); ok {
			member(name, rest)
		}
		break
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%w: no JSON member can be read", io.ErrUnexpectedEOF)
	}
	if marked {
		member(repair.PartialKey, []byte("true"))
	}
	whole := jsontext.Value(append(out, '}'))
	if err := whole.Indent(jsontext.WithIndent("  ")); err != nil {
		return nil, err
	}
	return append(whole, '\n'), nil
}

// brokenString returns a complete JSON string made of the readable beginning of a string value that is cut off. b
// begins at the colon before the value. The bool result is false if nothing can be read.
func brokenString(b []byte) ([]byte, bool) {
	b = bytes.TrimLeft(b, " \t\r\n:")
	if len(b) < 2 || b[0] != '"' {
		return nil, false
	}
	end := 1
	for end < len(b) {
		c := b[end]
		if c == '"' || c < ' ' {
			break
		}
		n := 1
		switch {
		case c == '\\' && end+1 < len(b) && b[end+1] == 'u':
			n = 6
		case c == '\\':
			n = 2
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRune(b[end:])
			if n = size; r == utf8.RuneError && size <= 1 {
				n = len(b) // bytes that are not UTF-8 end the string
			}
		}
		piece := append(append([]byte{'"'}, b[end:min(end+n, len(b))]...), '"')
		if end+n > len(b) || !jsontext.Value(piece).IsValid(jsontext.AllowInvalidUTF8(n == 6)) {
			break
		}
		end += n
	}
	if end == 1 {
		return nil, false
	}
	s := append(slices.Clone(b[:end]), '"')
	if !jsontext.Value(s).IsValid() { // half of a surrogate pair at the end
		if end < 7 {
			return nil, false
		}
		s = append(slices.Clone(b[:end-6]), '"')
	}
	return s, jsontext.Value(s).IsValid()
}

// firstSide returns data with only the first side of each conflict that a merge has marked.
func firstSide(data []byte) []byte {
	if !bytes.Contains(data, []byte("<<<<<<< ")) {
		return data
	}
	var out []byte
	const both, first, second = 0, 1, 2
	side := both
	for line := range bytes.Lines(data) {
		switch {
		case bytes.HasPrefix(line, []byte("<<<<<<< ")):
			side = first
		case side == first && (bytes.HasPrefix(line, []byte("=======")) || bytes.HasPrefix(line, []byte("||||||| "))):
			side = second
		case side == second && bytes.HasPrefix(line, []byte(">>>>>>> ")):
			side = both
		case side != second:
			out = append(out, line...)
		}
	}
	return out
}
