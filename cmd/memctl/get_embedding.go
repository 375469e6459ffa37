package main

import (
	"bytes"
	"encoding/json"
)

// withoutEmbedding returns a document without its member "embedding", and the count of numbers in that member.
// Everything else stays byte for byte the same. A document that is not an object is returned unchanged.
func withoutEmbedding(doc []byte) (rest []byte, numbers int) {
	d := json.NewDecoder(bytes.NewReader(doc))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return doc, 0
	}
	first, from := true, d.InputOffset()
	rest = append(rest, doc[:from]...)
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return doc, 0
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return doc, 0
		}
		member := doc[from:d.InputOffset()]
		from = d.InputOffset()
		if name == "embedding" {
			var list []json.Number
			if json.Unmarshal(value, &list) == nil {
				numbers = len(list)
			}
			continue
		}
		if first {
			member = bytes.TrimPrefix(member, []byte(",")) // the embedding was the first member
		}
		rest, first = append(rest, member...), false
	}
	return append(rest, doc[from:]...), numbers
}
