package importer

import (
	"bytes"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

var lax = []jsontext.Options{jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)}

// mend corrects JSON that Python's json module writes or reads and the JSON standard does not
// allow: NaN and Infinity, lone surrogates and invalid UTF-8, and duplicate names (the last one is
// used, as in Python). Few files need it. mends describes the corrections; it is empty if the text
// could not be corrected.
func mend(text []byte) (out []byte, mends []string) {
	bare := newFiniteReader(bytes.NewReader(text))
	finite, err := io.ReadAll(bare)
	if err != nil {
		return nil, nil
	}
	type pair struct {
		name string
		val  jsontext.Value
	}
	var all []pair
	at := map[string]int{}
	twice := false
	err = members(finite, func(name string, val jsontext.Value) error {
		p := pair{name, val.Clone()}
		if i, ok := at[name]; ok {
			twice, all[i] = true, p
			return nil
		}
		at[name] = len(all)
		all = append(all, p)
		return nil
	}, lax...)
	if err != nil {
		return nil, nil
	}
	out = []byte{'{'}
	replaced := false
	for _, p := range all {
		if bare.found > 0 && withoutNumber(p.name, &p.val) {
			continue
		}
		if !p.val.IsValid(jsontext.AllowDuplicateNames(true)) {
			replaced = true
			if err := p.val.Format(lax...); err != nil {
				return nil, nil
			}
		}
		out = member(out, p.name, p.val)
	}
	out = append(out, '}')
	if bare.found > 0 {
		mends = append(mends, "NaN or Infinity, which are not JSON, became null")
	}
	if twice {
		mends = append(mends, "of several members with the same name, the last was kept")
	}
	if replaced || len(mends) == 0 {
		mends = append(mends, "invalid characters became U+FFFD")
	}
	return out, mends
}

// withoutNumber reports whether a member must be omitted: its number was NaN or infinite. If a
// vector has such a number, withoutNumber replaces the whole vector by null.
func withoutNumber(name string, val *jsontext.Value) bool {
	switch name {
	case "quickrecal_score", "significance", "quickrecal", "access_count", "timestamp", "last_access_time", "last_access":
		return val.Kind() == 'n'
	case "embedding", "hyperbolic_embedding", "composite_embedding":
		if val.Kind() == '[' && bytes.Contains(*val, []byte("null")) {
			*val = jsontext.Value("null")
		}
	}
	return false
}
