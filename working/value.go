package working

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/jsondoc"
)

// MaxValue is the maximum length in bytes of a value, as JSON, and of the text of a scratchpad entry.
const MaxValue = 16 << 20

// encodeValue returns a value as compact JSON with sorted names, so that equal values have equal JSON. The result
// shares no memory with v.
func encodeValue(field string, v any) ([]byte, error) {
	raw, err := jsondoc.AppendValue(nil, v, 0, 0)
	if err == nil {
		err = jsondoc.CheckDepth(raw, 0, 0)
	}
	if err == nil {
		err = jsondoc.CheckCounts(raw)
	}
	if err != nil {
		return nil, jsondoc.InField(field, err)
	}
	if len(raw) > 0 && (raw[0] == '{' || raw[0] == '[') {
		text := jsontext.Value(raw)
		if err := text.Compact(); err != nil {
			return nil, jsondoc.InField(field, err)
		}
		raw = text
	}
	if len(raw) > MaxValue {
		return nil, &errs.FieldError{Field: field, Limit: fmt.Sprintf("%d bytes", MaxValue),
			Err: fmt.Errorf("%w: the value has %d bytes as JSON", errs.ErrTooLarge, len(raw))}
	}
	return raw, nil
}

// decoder decodes JSON values. It determines the Go type of numbers: asFloat decodes a number to a float64, or to a
// json.Number if float64 would lose precision; asWritten always decodes it to a json.Number.
type decoder bool

const (
	asFloat   decoder = false // decode to float64, or to json.Number if float64 would lose precision
	asWritten decoder = true  // decode to json.Number
)

// text decodes a JSON text, which must be valid, into a Go value.
func (d decoder) text(raw []byte) (any, error) {
	if d == asWritten {
		return jsondoc.DecodeWritten(raw)
	}
	return jsondoc.DecodeValue(raw)
}

// value decodes a stored JSON text into a Go value: nil, bool, string, a number, []any, or map[string]any. name is the
// name of the item. If the text is invalid, the error is a *CorruptionError with this name.
func (d decoder) value(name string, raw []byte) (any, error) {
	if !jsontext.Value(raw).IsValid() {
		return nil, notJSON(name, errors.New("the stored value is not JSON"))
	}
	v, err := d.text(raw)
	if err != nil {
		return nil, notJSON(name, err)
	}
	return v, nil
}

func decodeInto(name string, raw []byte, into any) error {
	if !jsontext.Value(raw).IsValid() {
		return notJSON(name, errors.New("the stored value is not JSON"))
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return &errs.FieldError{Field: display(name), Err: err}
	}
	return nil
}

func notJSON(name string, err error) error {
	return &errs.CorruptionError{Path: display(name), Offset: -1, Err: err}
}
