package forge

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"
)

// SealTable recomputes the checksums of a table of package index/table (memory_index.json, mapping.json, and their
// deltas). The body and the metadata of the table may have been changed, even in length, but the number of blocks must
// be unchanged.
func SealTable(b []byte) ([]byte, error) {
	const block, open, end = 64 << 10, `,"metadata": {"version":"`, `,"end":"`
	body, last := bytes.LastIndex(b, []byte(open)), bytes.LastIndex(b, []byte(end))
	if body < 0 || last < body {
		return nil, errors.New("no table")
	}
	meta := b[body:last]
	hashes := bytes.LastIndex(meta, []byte(`"blocks":"`)) + len(`"blocks":"`)
	out := append(bytes.Clone(b[:body]), meta[:hashes]...)
	for at := 0; at < body; at += block {
		out = fmt.Appendf(out, "%016x", xxhash.Sum64(b[at:min(body, at+block)]))
	}
	out = append(out, "\"}\n"...)
	hash := xxhash.Sum64(out[body:])
	return fmt.Appendf(out, "%s%016x %016x\"}\n", end, body, hash), nil
}
