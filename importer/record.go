package importer

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// vizorID returns an id made from parts, which is the same for the same record in every run.
func vizorID(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		io.WriteString(h, p)
	}
	return "vizor-" + hex.EncodeToString(h.Sum(nil)[:16])
}

// record is a record of Vizor, converted to the parts of a memory.
type record struct {
	content   []byte // a JSON string; nil if there is no value
	timestamp []byte // a JSON string; nil if the record has no timestamp
	metadata  []named
	odd       string // descriptions of values that could not be converted unchanged
}

type named struct {
	name string
	val  jsontext.Value
}

func (r *run) readRecord(category string, val jsontext.Value) (*record, error) {
	rec := &record{}
	if val.Kind() != '{' {
		rec.content, rec.odd = asContent(val), "the record is a bare value, not an object"
		return rec, nil
	}
	err := members(val, func(name string, v jsontext.Value) error {
		v = v.Clone()
		switch {
		case name == "value":
			rec.content = asContent(v)
		case name == "timestamp":
			if t, ok := readTime(v, r.opts.Location); ok {
				rec.timestamp = quote(t)
			} else if v.Kind() != 'n' {
				rec.odd = "the timestamp cannot be read; it is kept in metadata"
				rec.metadata = append(rec.metadata, named{name, v})
			}
		case name == "metadata" && v.Kind() == '{':
			return members(v, func(name string, v jsontext.Value) error {
				rec.metadata = append(rec.metadata, named{name, v.Clone()})
				return nil
			}, lax...)
		case name == "metadata" && v.Kind() == 'n':
		case name == "category" && v.Kind() == '"' && unquote(v) == category:
		default:
			rec.metadata = append(rec.metadata, named{name, v})
		}
		return nil
	}, lax...)
	return rec, err
}

// asContent returns a value as a JSON string: a string unchanged, any other value as a string that contains its JSON
// text. It returns nil if val is not valid JSON.
func asContent(val jsontext.Value) []byte {
	if val.Kind() == '"' {
		return quote(unquote(val))
	}
	val = val.Clone()
	if err := val.Compact(lax...); err != nil {
		return nil
	}
	return quote(string(val))
}

// body returns the memory as JSON without its id. session, category and key become members of the metadata. If the
// record's own metadata has another member with the name of one of these, or a second member of any name, body puts
// that member into an object "metadata" inside the metadata. A member "metadata" of the record is put there too.
func (rec *record) body(session, category, key string) []byte {
	out := member([]byte{'{'}, "content", rec.content)
	if rec.timestamp != nil {
		out = member(out, "timestamp", rec.timestamp)
	}
	meta := member([]byte{'{'}, "session_id", quote(session))
	meta = member(meta, "category", quote(category))
	meta = member(meta, "key", quote(key))
	used := map[string]bool{"session_id": true, "category": true, "key": true}
	nested := []byte{'{'}
	var inner jsontext.Value
	inside := map[string]bool{}
	for _, m := range rec.metadata {
		m.val = clean(m.val)
		switch {
		case used[m.name] && !inside[m.name]:
			inside[m.name] = true
			nested = member(nested, m.name, m.val)
		case m.name == "metadata":
			inner = m.val
		case !used[m.name]:
			used[m.name] = true
			meta = member(meta, m.name, m.val)
		}
	}
	switch {
	case len(nested) > 1 && inner != nil:
		meta = member(meta, "metadata", append(member(nested, "metadata", inner), '}'))
	case len(nested) > 1:
		meta = member(meta, "metadata", append(nested, '}'))
	case inner != nil:
		meta = member(meta, "metadata", inner)
	}
	return append(member(out, "metadata", append(meta, '}')), '}')
}

// clean returns a value, which was parsed leniently, as strict JSON.
func clean(val jsontext.Value) jsontext.Value {
	if val.IsValid() {
		if out := val.Clone(); out.Compact() == nil {
			return out
		}
	}
	// An object with duplicate names has no strict form: keep its text as a string.
	if out := val.Clone(); out.Format(jsontext.AllowInvalidUTF8(true)) == nil && !bytes.Equal(out, val) {
		return out
	}
	return quote(string(val))
}
