package intake

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/internal/sniff"
	"github.com/varve-db/varve/memstore"
)

// DecodeMemory decodes a memory, which gets an id from newID if it has none.
func DecodeMemory(raw []byte, limits memstore.Limits, newID func() (string, error)) (m varve.Memory, err error) {
	d, err := memstore.Decode(raw, memstore.DecodeOptions{Limits: limits, IDOptional: true})
	switch {
	case err != nil:
		return m, err
	case d.ID == "" && hasID(raw, "id"):
		return m, NoID("id", limits.IDBytes)
	case d.ID == "":
		d.ID, err = newID()
	}
	return *d, err
}

// DecodeAssembly decodes an assembly. If the document has no id, the assembly gets an id from newID.
func DecodeAssembly(raw []byte, limits assembly.Limits, newID func() (string, error)) (a varve.Assembly, err error) {
	d, err := assembly.Decode(raw, assembly.DecodeOptions{Limits: limits, IDOptional: true})
	switch {
	case err != nil:
		return a, err
	case d.ID == "" && (hasID(raw, "assembly_id") || hasID(raw, "id")):
		return a, NoID("assembly_id", limits.IDBytes)
	case d.ID == "":
		d.ID, err = newID()
	}
	return *d, err
}

// decodeEach decodes one JSON object, an array of objects, or objects one after another. It calls decode for each
// object. noun is the noun for an object in errors.
func decodeEach[T any](r io.Reader, noun string, decode func(raw []byte) (T, error)) ([]T, error) {
	var all []T
	for raw, err := range values(r) {
		nth := fmt.Sprintf("%s %d", noun, len(all)+1)
		if err != nil {
			return nil, Invalid(nth, err)
		}
		v, err := decode(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", nth, err)
		}
		all = append(all, v)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: the input contains no %s", varve.ErrInvalid, noun)
	}
	return all, nil
}

func NoID(field string, limit int) error {
	return &varve.FieldError{Field: field, Value: `""`, Limit: fmt.Sprintf("1 to %d bytes", limit),
		Err: errors.New("an id must not be empty")}
}

// hasID reports whether the JSON object raw has a member called name that contains an id. The value null is not an id;
// an empty string is one.
func hasID(raw []byte, name string) bool {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return false
	}
	id, ok := m[name]
	return ok && string(id) != "null"
}

// values yields the JSON values that r contains: the elements of an array, or values that follow one another.
func values(r io.Reader) func(func(json.RawMessage, error) bool) {
	return func(yield func(json.RawMessage, error) bool) {
		br := bufio.NewReader(r)
		if mark, err := br.Peek(3); err == nil && bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
			_, _ = br.Discard(3)
		}
		head, _ := br.Peek(sniff.Longest)
		if what := sniff.Foreign(head); what != nil {
			yield(nil, what)
			return
		}
		d := json.NewDecoder(br)
		array := false
		if first, err := firstByte(br); err == nil && first == '[' {
			array = true
			if _, err := d.Token(); err != nil {
				yield(nil, err)
				return
			}
		}
		for !array || d.More() {
			var raw json.RawMessage
			err := d.Decode(&raw)
			if errors.Is(err, io.EOF) && !array {
				return
			}
			if !yield(raw, err) || err != nil {
				return
			}
		}
		if _, err := d.Token(); err != nil {
			yield(nil, err)
			return
		}
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			yield(nil, errors.New("unexpected data after the array"))
		}
	}
}

// firstByte returns the first byte that is not white space, without consuming it.
func firstByte(r *bufio.Reader) (byte, error) {
	for {
		b, err := r.ReadByte()
		if err != nil {
			return 0, err
		}
		if b != ' ' && b != '\t' && b != '\n' && b != '\r' {
			return b, r.UnreadByte()
		}
	}
}

// Invalid returns an error for input whose JSON cannot be parsed. input names the input in the message, and err is
// the error of the parser.
func Invalid(input string, err error) error {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("%s: %w: the JSON is incomplete", input, varve.ErrInvalid)
	case errors.As(err, &syntax):
		return fmt.Errorf("%s: %w: not JSON at byte %d: %w", input, varve.ErrInvalid, syntax.Offset, err)
	}
	return fmt.Errorf("%s: %w: %w", input, varve.ErrInvalid, err)
}
