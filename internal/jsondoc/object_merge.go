package jsondoc

import (
	"bytes"
	"maps"
	"math"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// MergeValue encodes v as the new value of a member whose text is raw. It keeps the text of every part of raw that v
// does not change: the spelling of numbers, and the order of names. New names are sorted and follow the existing names.
// same reports whether nothing changed; if so, out is raw. Errors are as for AppendValue.
func MergeValue(raw []byte, v any, level, maxDepth int) (out []byte, same bool, err error) {
	switch v := v.(type) {
	case map[string]any:
		if raw[0] == '{' {
			return mergeObject(raw, v, level, maxDepth)
		}
	case []any:
		if raw[0] == '[' {
			return mergeList(raw, v, level, maxDepth)
		}
	}
	text, err := AppendValue(nil, v, level, maxDepth)
	if err != nil {
		return nil, false, err
	}
	switch {
	case bytes.Equal(raw, text):
		return raw, true, nil
	case raw[0] != text[0] && !(isNumber(raw) && isNumber(text)):
		return text, false, nil
	case raw[0] == '"':
		if unquote(raw) == unquote(text) {
			return raw, true, nil
		}
	case raw[0] == '{' || raw[0] == '[': // a typed map or list: compare its content
		decoded, err := DecodeValue(text)
		if err != nil {
			return nil, false, err
		}
		return MergeValue(raw, decoded, level, maxDepth)
	case isNumber(raw) && (sameNumber(raw, text) || isFloat(raw, v)):
		return raw, true, nil
	}
	return text, false, nil
}

// isFloat reports whether v is the float64 that the JSON number raw represents exactly. The texts of the two may
// differ: a large integer that a float64 represents exactly is encoded with fewer digits.
func isFloat(raw []byte, v any) bool {
	f, ok := v.(float64)
	x, exact := exactFloat(raw)
	return ok && exact && x == f && math.Signbit(x) == math.Signbit(f)
}

func isNumber(raw []byte) bool { return raw[0] == '-' || '0' <= raw[0] && raw[0] <= '9' }

func mergeObject(raw []byte, m map[string]any, level, maxDepth int) ([]byte, bool, error) {
	if err := tooDeep(level, maxDepth); err != nil {
		return nil, false, err
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw))
	o, err := parseMembers(dec, raw)
	if err != nil {
		return nil, false, syntaxError(raw, 0, err)
	}
	same := true
	old := make(map[string]bool, len(o.members))
	kept := make([]Member, 0, len(m))
	for _, member := range o.members {
		v, ok := m[member.Name]
		if !ok {
			same = false
			continue
		}
		old[member.Name] = true
		text, unchanged, err := MergeValue(member.Value, v, level+1, maxDepth)
		if err != nil {
			return nil, false, InField(step(member.Name), err)
		}
		member.Value = text
		same = same && unchanged
		kept = append(kept, member)
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if old[k] {
			continue
		}
		if _, err := AppendString(nil, k); err != nil {
			return nil, false, InField(step(k), err)
		}
		text, err := AppendValue(nil, m[k], level+1, maxDepth)
		if err != nil {
			return nil, false, InField(step(k), err)
		}
		kept, same = append(kept, Member{Name: k, Value: text}), false
	}
	if same {
		return raw, true, nil
	}
	return (&Object{members: kept}).Append(nil, level), false, nil
}

func mergeList(raw []byte, list []any, level, maxDepth int) ([]byte, bool, error) {
	if err := tooDeep(level, maxDepth); err != nil {
		return nil, false, err
	}
	old, err := elements(raw)
	if err != nil {
		return nil, false, err
	}
	same := len(old) == len(list)
	texts := make([][]byte, len(list))
	for i, v := range list {
		unchanged := false
		if i < len(old) {
			texts[i], unchanged, err = MergeValue(old[i], v, level+1, maxDepth)
		} else {
			texts[i], err = AppendValue(nil, v, level+1, maxDepth)
		}
		if err != nil {
			return nil, false, InField(index(i), err)
		}
		same = same && unchanged
	}
	if same {
		return raw, true, nil
	}
	if len(texts) == 0 {
		return []byte("[]"), false, nil
	}
	out := []byte{'['}
	for i, text := range texts {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(AppendNewline(out, level+1), text...)
	}
	return append(AppendNewline(out, level), ']'), false, nil
}

// elements returns the texts of a list's elements.
func elements(raw []byte) ([][]byte, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw))
	if _, err := dec.ReadToken(); err != nil {
		return nil, syntaxError(raw, 0, err)
	}
	var list [][]byte
	for dec.PeekKind() != ']' {
		v, err := readRaw(dec, raw)
		if err != nil {
			return nil, syntaxError(raw, 0, err)
		}
		list = append(list, v)
	}
	return list, nil
}
