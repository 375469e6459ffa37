package jsondoc

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
)

// DecodeFloats decodes a vector: a list of numbers, null (nil), or a vector in the form in which numpy's str() prints
// it, "[-4.80e-02 4.46e-02\n …]". It returns an error for a vector that numpy shortened with "...", because the numbers
// are lost, and for a number that float32 cannot hold. maxDims is the maximum number of dimensions.
func DecodeFloats(raw []byte, maxDims int) ([]float32, error) {
	switch raw[0] {
	case 'n':
		return nil, nil
	case '[':
		return floatList(raw, maxDims)
	case '"':
		return printedFloats(unquote(raw), maxDims)
	}
	return nil, &errs.FieldError{Value: human.Quote(string(raw)), Err: errors.New("not a list of numbers")}
}

func floatList(raw []byte, maxDims int) ([]float32, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw))
	if _, err := dec.ReadToken(); err != nil {
		return nil, syntaxError(raw, 0, err)
	}
	list := make([]float32, 0, min(dimsOf(raw), max(maxDims, 0)))
	for dec.PeekKind() != ']' {
		v, err := dec.ReadValue()
		if err != nil {
			return nil, syntaxError(raw, 0, err)
		}
		if len(list) == maxDims {
			return nil, tooManyDims(maxDims)
		}
		if !isNumber(v) {
			return nil, &errs.FieldError{Field: index(len(list)), Value: human.Quote(string(v)), Err: errors.New("not a number")}
		}
		if list, err = appendParsed(list, v); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// dimsOf returns the number of dimensions of a vector's text. It counts commas, because a list of numbers has no other
// commas.
func dimsOf(raw []byte) int {
	if len(bytes.TrimSpace(raw[1:len(raw)-1])) == 0 {
		return 0
	}
	return bytes.Count(raw, []byte{','}) + 1
}

func tooManyDims(maxDims int) error {
	return &errs.FieldError{Limit: fmt.Sprintf("%d dimensions", maxDims),
		Err: fmt.Errorf("%w: too many dimensions", errs.ErrTooLarge)}
}

// appendParsed parses a number and appends it to list. It copies the text only for an error message, so that the text
// passed to ParseFloat stays on the stack.
func appendParsed[T ~string | ~[]byte](list []float32, text T) ([]float32, error) {
	f, err := strconv.ParseFloat(string(text), 32)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, &errs.FieldError{Field: index(len(list)), Value: human.Quote(string(text)),
			Err: errors.New("not a number in the range of float32")}
	}
	return append(list, float32(f)), nil
}

func printedFloats(s string, maxDims int) ([]float32, error) {
	refuse := func(why string) ([]float32, error) {
		return nil, &errs.FieldError{Value: human.Quote(s), Err: errors.New(why)}
	}
	body := strings.TrimSpace(s)
	if len(body) < 2 || body[0] != '[' || body[len(body)-1] != ']' {
		return refuse("neither a list of numbers nor a vector printed by numpy")
	}
	body = body[1 : len(body)-1]
	if strings.Contains(body, "...") {
		return refuse(`numpy shortened the vector with "...", so its numbers are lost: embed the content again, or ` +
			`set the embedding to null`)
	}
	list := []float32{}
	for field := range printedFields(body) {
		if len(list) == maxDims {
			return nil, tooManyDims(maxDims)
		}
		if strings.ContainsAny(field, "xX_") { // ParseFloat reads Go's hexadecimal floats too
			return nil, &errs.FieldError{Field: index(len(list)), Value: human.Quote(field), Err: errors.New("not a number")}
		}
		var err error
		if list, err = appendParsed(list, field); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// PrintedList converts the text of a vector that numpy's str() printed to a JSON list with the same digits. A number
// may have more digits than float32 can hold.
func PrintedList(raw []byte) ([]byte, error) {
	s := unquote(raw)
	if _, err := printedFloats(s, math.MaxInt); err != nil {
		return nil, err
	}
	dst := []byte{'['}
	for field := range printedFields(strings.Trim(strings.TrimSpace(s), "[]")) {
		f, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return nil, err
		}
		if len(dst) > 1 {
			dst = append(dst, ',')
		}
		if dst, err = AppendFloat(AppendNewline(dst, 2), f, 64); err != nil {
			return nil, err
		}
	}
	if len(dst) == 1 {
		return append(dst, ']'), nil
	}
	return append(AppendNewline(dst, 1), ']'), nil
}

// ListPrinted converts a member whose value numpy printed into a list. It leaves any other member unchanged.
func (o *Object) ListPrinted(name string) {
	if raw, ok := o.Get(name); ok && raw[0] == '"' {
		if list, err := PrintedList(raw); err == nil {
			o.Set(name, list, nil)
		}
	}
}

func printedFields(body string) iter.Seq[string] {
	return strings.FieldsFuncSeq(body, func(r rune) bool {
		return r == ' ' || r == '\n' || r == '\r' || r == '\t' || r == ','
	})
}

// AppendFloats appends a vector to dst as a list, indented for the given level. It appends null if the vector is nil.
// Its errors name the element.
func AppendFloats(dst []byte, list []float32, level int) ([]byte, error) {
	if list == nil {
		return append(dst, "null"...), nil
	}
	if len(list) == 0 {
		return append(dst, '[', ']'), nil
	}
	dst = append(dst, '[')
	for i, f := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = AppendFloat(AppendNewline(dst, level+1), float64(f), 32); err != nil {
			return dst, InField(index(i), err)
		}
	}
	return append(AppendNewline(dst, level), ']'), nil
}

// EqualFloats reports whether a JSON text represents the same vector as list, bit for bit as float32.
func EqualFloats(raw []byte, list []float32) bool {
	old, err := DecodeFloats(raw, math.MaxInt)
	if err != nil || len(old) != len(list) || (old == nil) != (list == nil) {
		return false
	}
	for i, f := range list {
		if math.Float32bits(f) != math.Float32bits(old[i]) {
			return false
		}
	}
	return true
}
