package jsondoc

import (
	"bytes"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth is the default maximum nesting of a document; the document itself is level 1.
const MaxDepth = 100

// Member is one member of an Object. Value is the text of its value, exactly as in the document. The text must not be
// modified.
type Member struct {
	Name  string
	Value []byte

	quoted []byte // the text of the name with its quotes; nil for a member that was not parsed from a text
}

// Object is a JSON object as an ordered list of members whose values are kept as text. Members that are not replaced or
// removed are written back unchanged, byte for byte and in the same order, so that unknown members survive. Names are
// unique. The text of an Object is never modified, so that clones can share it.
type Object struct {
	members []Member
}

// Parse reads a document: one JSON object in UTF-8, followed by nothing except white space. It refuses duplicate
// members at any level, lone surrogates, NaN, nesting beyond maxDepth (0: MaxDepth) and more than MostMembers names.
// The Object keeps src, so the caller must not modify src afterwards.
func Parse(src []byte, maxDepth int) (*Object, error) {
	if err := checkShape(src, 0, maxDepth, MostMembers); err != nil {
		return nil, InField("document", err)
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(src))
	if dec.PeekKind() != '{' {
		v, err := dec.ReadValue()
		if err == nil {
			err = &SyntaxError{Offset: dec.InputOffset() - int64(len(v)), Err: errNotObject}
			return nil, err
		}
		return nil, syntaxError(src, 0, err)
	}
	o, err := parseMembers(dec, src)
	if err != nil {
		return nil, syntaxError(src, 0, err)
	}
	if err := atEnd(dec, src); err != nil {
		return nil, err
	}
	return o, nil
}

func parseMembers(dec *jsontext.Decoder, src []byte) (*Object, error) {
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	o := &Object{members: make([]Member, 0, 16)}
	for dec.PeekKind() != '}' {
		name, err := readRaw(dec, src)
		if err != nil {
			return nil, err
		}
		value, err := readRaw(dec, src)
		if err != nil {
			return nil, err
		}
		o.members = append(o.members, Member{Name: unquote(name), Value: value, quoted: name})
	}
	_, err := dec.ReadToken()
	return o, err
}

// readRaw returns the next value as a slice of src. It does not return the result of ReadValue, because that belongs to
// the decoder and is valid only until the next call.
func readRaw(dec *jsontext.Decoder, src []byte) ([]byte, error) {
	v, err := dec.ReadValue()
	if err != nil {
		return nil, err
	}
	end := dec.InputOffset()
	return src[end-int64(len(v)) : end : end], nil
}

func atEnd(dec *jsontext.Decoder, src []byte) error {
	end := dec.InputOffset()
	_, err := dec.ReadToken()
	if err == io.EOF {
		return nil
	}
	e := &SyntaxError{Offset: end + int64(len(src[end:])-len(bytes.TrimLeft(src[end:], " \t\r\n"))), Err: errTrailing}
	if conflictMarker(src, e.Offset) {
		e.Err = ErrMergeConflict
	}
	return e
}

// Len returns the number of members.
func (o *Object) Len() int { return len(o.members) }

// Members returns the members in their order. The slice belongs to the Object.
func (o *Object) Members() []Member { return o.members }

// Get returns the text of a member's value. It returns false if no member has this name.
func (o *Object) Get(name string) ([]byte, bool) {
	if i := o.index(name); i >= 0 {
		return o.members[i].Value, true
	}
	return nil, false
}

func (o *Object) index(name string) int {
	return slices.IndexFunc(o.members, func(m Member) bool { return m.Name == name })
}

// Clone returns an Object that can be changed without changing o.
func (o *Object) Clone() *Object { return &Object{members: slices.Clone(o.members)} }
