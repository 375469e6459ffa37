package jsondoc

import (
	"bytes"
	"errors"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
)

// The functions below decode the value of a member. For all of them null is the zero value, as for an
// absent member; an error is a *errs.FieldError without a field.

func refuse(raw []byte, reason string) error {
	return &errs.FieldError{Value: human.Quote(string(raw)), Err: errors.New(reason)}
}

// DecodeText decodes a string. null is decoded as "". An error is a *errs.FieldError without a field.
func DecodeText(raw []byte) (string, error) {
	if raw[0] == 'n' {
		return "", nil
	}
	s, ok := DecodeString(raw)
	if !ok {
		return "", refuse(raw, "not a string")
	}
	return s, nil
}

// DecodeFloat decodes a number in the range of float64. null is decoded as 0.
func DecodeFloat(raw []byte) (float64, error) {
	if raw[0] == 'n' {
		return 0, nil
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || math.IsInf(f, 0) {
		return 0, refuse(raw, "not a number in the range of float64")
	}
	return f, nil
}

// DecodeCount decodes a whole number. It accepts 3.0 as 3, because languages without integers write numbers in this
// form. null is decoded as 0.
func DecodeCount(raw []byte) (int64, error) {
	if raw[0] == 'n' {
		return 0, nil
	}
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return n, nil
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, refuse(raw, "not a whole number")
	}
	return int64(f), nil
}

// DecodeMap decodes an object, with values as DecodeValue returns them. null is decoded as nil.
func DecodeMap(raw []byte) (map[string]any, error) {
	if raw[0] == 'n' {
		return nil, nil
	}
	if raw[0] != '{' {
		return nil, refuse(raw, "not an object")
	}
	v, err := DecodeValue(raw)
	if err != nil {
		return nil, err
	}
	return v.(map[string]any), nil
}

// DecodeBool decodes true or false. null is decoded as false.
func DecodeBool(raw []byte) (bool, error) {
	switch raw[0] {
	case 'n', 't', 'f':
		return raw[0] == 't', nil
	}
	return false, refuse(raw, "neither true nor false")
}

// DecodeStrings decodes a list of strings. null is decoded as nil. An error names the element that is not a string.
func DecodeStrings(raw []byte) ([]string, error) {
	switch raw[0] {
	case 'n':
		return nil, nil
	case '[':
	default:
		return nil, refuse(raw, "not a list of strings")
	}
	list := make([]string, 0, min(dimsOf(raw), 1<<16))
	err := EachElement(raw, func(i int, v []byte) error {
		s, ok := DecodeString(v)
		if !ok {
			return InField(index(i), refuse(v, "not a string"))
		}
		list = append(list, s)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// EachElement calls f with the index and the text of each element of a list; the text is valid during the call.
func EachElement(raw []byte, f func(i int, v []byte) error) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw))
	if _, err := dec.ReadToken(); err != nil {
		return syntaxError(raw, 0, err)
	}
	for i := 0; dec.PeekKind() != ']'; i++ {
		v, err := dec.ReadValue()
		if err != nil {
			return syntaxError(raw, 0, err)
		}
		if err := f(i, v); err != nil {
			return err
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return syntaxError(raw, 0, err)
	}
	return atEnd(dec, raw)
}
