package jsondoc

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
)

// The functions on a raw text, here and in the other files, take the Value of a Member: valid JSON
// without white space around it, never empty.

// DecodeValue returns the Go value of a text: nil, bool, string, float64, json.Number (see Number), []any, or
// map[string]any. The result shares no memory with raw. A text of more than MostValues values is an error.
func DecodeValue(raw []byte) (any, error) { return decodeValue(raw, Number) }

// DecodeWritten does the same as DecodeValue, but returns each number as a json.Number with the text of the number:
// 1.10 stays 1.10.
func DecodeWritten(raw []byte) (any, error) {
	return decodeValue(raw, func(raw []byte) any { return stdjson.Number(raw) })
}

func decodeValue(raw []byte, number func([]byte) any) (any, error) {
	if len(raw) > 0 && raw[0] != '{' && raw[0] != '[' {
		return scalar(raw, number), nil
	}
	if err := checkValues(raw); err != nil {
		return nil, err
	}
	v, err := decodeNext(jsontext.NewDecoder(bytes.NewBuffer(raw)), number)
	if err != nil {
		return nil, syntaxError(raw, 0, err)
	}
	return v, nil
}

func decodeNext(dec *jsontext.Decoder, number func([]byte) any) (any, error) {
	switch dec.PeekKind() {
	case '{':
		if _, err := dec.ReadToken(); err != nil {
			return nil, err
		}
		m := map[string]any{}
		for dec.PeekKind() != '}' {
			name, err := dec.ReadValue()
			if err != nil {
				return nil, err
			}
			key := unquote(name)
			if m[key], err = decodeNext(dec, number); err != nil {
				return nil, err
			}
		}
		_, err := dec.ReadToken()
		return m, err
	case '[':
		if _, err := dec.ReadToken(); err != nil {
			return nil, err
		}
		list := []any{}
		for dec.PeekKind() != ']' {
			v, err := decodeNext(dec, number)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := dec.ReadToken()
		return list, err
	}
	raw, err := dec.ReadValue()
	if err != nil {
		return nil, err
	}
	return scalar(raw, number), nil
}

func scalar(raw []byte, number func([]byte) any) any {
	switch raw[0] {
	case 'n':
		return nil
	case 't', 'f':
		return raw[0] == 't'
	case '"':
		return unquote(raw)
	}
	return number(raw)
}

// DecodeString returns the content of a JSON string; ok is false for anything else.
func DecodeString(raw []byte) (s string, ok bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	return unquote(raw), true
}

// EqualString reports whether a JSON text represents the string s. It decodes the text only if that is necessary.
func EqualString(raw []byte, s string) bool {
	if len(raw) < 2 || raw[0] != '"' {
		return false
	}
	if body := raw[1 : len(raw)-1]; !hasEscape(body) {
		return string(body) == s
	}
	return unquote(raw) == s
}

func hasEscape(body []byte) bool { return bytes.IndexByte(body, '\\') >= 0 }

// AppendValue appends any Go value to dst as JSON, indented for the given level, with sorted names. It returns an error
// if the document would nest deeper than maxDepth levels (0: MaxDepth), and so also for a map that contains itself.
// Errors are *errs.FieldError; their field is the path below this value, and the caller completes it with InField.
func AppendValue(dst []byte, v any, level, maxDepth int) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case string:
		return AppendString(dst, v)
	case float64:
		return AppendFloat(dst, v, 64)
	case float32:
		return AppendFloat(dst, float64(v), 32)
	case int:
		return strconv.AppendInt(dst, int64(v), 10), nil
	case int64:
		return strconv.AppendInt(dst, v, 10), nil
	case uint64:
		return strconv.AppendUint(dst, v, 10), nil
	case stdjson.Number:
		return appendNumber(dst, v)
	case map[string]any:
		return appendMap(dst, v, level, maxDepth)
	case []any:
		return appendList(dst, v, level, maxDepth)
	}
	raw, err := marshal(v)
	if err != nil {
		return dst, err
	}
	if err := CheckShape(raw, level, maxDepth); err != nil {
		return dst, err
	}
	if raw[0] != '{' && raw[0] != '[' {
		return append(dst, raw...), nil
	}
	decoded, err := DecodeWritten(raw)
	if err != nil {
		return dst, err
	}
	return AppendValue(dst, decoded, level, maxDepth)
}

func appendNumber(dst []byte, n stdjson.Number) ([]byte, error) {
	if raw := jsontext.Value(n); raw.Kind() != '0' || !raw.IsValid() || strings.TrimSpace(string(n)) != string(n) {
		return dst, &errs.FieldError{Value: human.Quote(string(n)), Err: errors.New("not a JSON number")}
	}
	return append(dst, n...), nil
}

func appendMap(dst []byte, m map[string]any, level, maxDepth int) ([]byte, error) {
	if err := tooDeep(level, maxDepth); err != nil {
		return dst, err
	}
	if len(m) == 0 {
		return append(dst, '{', '}'), nil
	}
	var few [16]string
	keys := slices.AppendSeq(few[:0], maps.Keys(m))
	slices.Sort(keys)
	dst = append(dst, '{')
	for i, k := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendNewline(dst, level+1)
		var err error
		if dst, err = AppendString(dst, k); err != nil {
			return dst, InField(step(k), err)
		}
		dst = append(dst, ':', ' ')
		if dst, err = AppendValue(dst, m[k], level+1, maxDepth); err != nil {
			return dst, InField(step(k), err)
		}
	}
	return append(AppendNewline(dst, level), '}'), nil
}

func appendList(dst []byte, list []any, level, maxDepth int) ([]byte, error) {
	if err := tooDeep(level, maxDepth); err != nil {
		return dst, err
	}
	if len(list) == 0 {
		return append(dst, '[', ']'), nil
	}
	dst = append(dst, '[')
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = AppendValue(AppendNewline(dst, level+1), v, level+1, maxDepth); err != nil {
			return dst, InField(index(i), err)
		}
	}
	return append(AppendNewline(dst, level), ']'), nil
}

// tooDeep returns an error if a list or an object at this level would be nested too deeply. The document itself is at
// level 0.
func tooDeep(level, maxDepth int) error {
	if maxDepth <= 0 {
		maxDepth = MaxDepth
	}
	if level < maxDepth {
		return nil
	}
	return &errs.FieldError{Limit: fmt.Sprintf("depth %d", maxDepth),
		Err: fmt.Errorf("%w: nested too deeply, or a value contains itself", errs.ErrTooLarge)}
}

// marshal encodes a value of a type that AppendValue does not handle itself. It sets an option for any json.Number in
// the value, because go-json-experiment would otherwise encode a json.Number as a string.
func marshal(v any) ([]byte, error) {
	raw, err := json.Marshal(v, json.Deterministic(true), json.WithMarshalers(json.MarshalFunc(
		func(n stdjson.Number) ([]byte, error) { return appendNumber(nil, n) })))
	if err == nil {
		return raw, nil
	}
	f := &errs.FieldError{Value: fmt.Sprintf("(Go type %T)", v), Err: err}
	if sem, ok := errors.AsType[*json.SemanticError](err); ok {
		f.Field = pointerPath(sem.JSONPointer)
	} else if syn, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		f.Field = pointerPath(syn.JSONPointer)
	}
	return nil, f
}

func pointerPath(p jsontext.Pointer) string {
	var path string
	for t := range p.Tokens() {
		if n, err := strconv.Atoi(t); err == nil {
			path += index(n)
		} else {
			path += step(t)
		}
	}
	return path
}

func index(i int) string { return "[" + strconv.Itoa(i) + "]" }

// step returns the part of an error's path that leads to a member. It quotes a name that has other characters than
// letters, digits, _ and -.
func step(name string) string {
	for i := range len(name) {
		if c := name[i]; c != '_' && c != '-' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return "[" + human.Quote(name) + "]"
		}
	}
	if name == "" {
		return `[""]`
	}
	return "." + name
}
