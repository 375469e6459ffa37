package purgefile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"
)

// MostRows is the maximum number of rows in one log entry. This number of rows fits into the smallest segment.
const MostRows = 128

// mostLine is the maximum length in bytes of a list of purges that Parse accepts.
const mostLine = 32 << 10

// digest is the first bytes of a hash; in JSON it is written as hexadecimal digits.
type digest [16]byte

func (d digest) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(d[:])), nil }

func (d *digest) UnmarshalText(b []byte) error {
	if hex.DecodedLen(len(b)) != len(d) {
		return fmt.Errorf("a hash has %d digits, but must have %d", len(b), hex.EncodedLen(len(d)))
	}
	_, err := hex.Decode(d[:], b)
	return err
}

// Key is a digest of the log key of a document. It identifies the document without containing the document's name.
type Key = digest

// KeyOf returns the digest of the log key of a document in the store with the given UUID.
func KeyOf(store [16]byte, key string) Key {
	h := sha256.New()
	h.Write([]byte("varve purge"))
	h.Write(store[:])
	h.Write([]byte(key))
	return Key(h.Sum(nil)[:16])
}

// Row records that a document was purged, or that a version was redacted.
type Row struct {
	Key      Key    `json:"key"`
	Version  uint64 `json:"version"` // versions up to this one are purged; of a redaction, the version
	Redacted bool   `json:"redacted,omitempty"`
	Time     int64  `json:"time,omitempty"`   // of the redacted version: its commit, Unix microseconds
	Writer   uint32 `json:"writer,omitempty"` // of the redacted version
	Next     uint64 `json:"next,omitempty"`   // the version that replaced or deleted the redacted one; 0: unknown
	// First is a position before which the log had none of the data that the purge erased; 0: unknown. A redaction has
	// no First: for it, Version is that position.
	First uint64 `json:"first,omitempty"`

	Since uint64 `json:"since,omitempty"` // position of the entry
	At    int64  `json:"at,omitempty"`    // commit of the entry, Unix microseconds
	By    uint32 `json:"by,omitempty"`    // writer of the entry
	Store digest `json:"store,omitzero"`  // UUID with which Key is made
	Done  bool   `json:"done,omitempty"`  // of a redaction: nothing is left to overwrite
	Ended uint64 `json:"ended,omitempty"` // of a redaction that is Done: position of the log at that time; 0: unknown
}

var errRows = errors.New("not a valid list of purges")

type line struct {
	Purged []Row `json:"purged"`
}

// Line returns the content of the log entry that records purges. It omits the fields of the rows whose values the
// reader takes from the entry itself.
func Line(rows []Row) ([]byte, error) {
	l := line{make([]Row, len(rows))}
	for i, r := range rows {
		r.Since, r.At, r.By, r.Store, r.Done, r.Ended = 0, 0, 0, digest{}, false, 0
		l.Purged[i] = r
	}
	return json.Marshal(l)
}

// Parse parses the content of a log entry that records purges.
func Parse(b []byte) ([]Row, error) {
	if len(b) > mostLine {
		return nil, fmt.Errorf("%w: the list has %d bytes, but the limit is %d", errRows, len(b), mostLine)
	}
	var l line
	if err := json.Unmarshal(b, &l); err != nil {
		return nil, fmt.Errorf("%w: %w", errRows, err)
	}
	if len(l.Purged) == 0 || len(l.Purged) > MostRows {
		return nil, fmt.Errorf("%w: the list has %d rows, but must have 1 to %d rows", errRows, len(l.Purged), MostRows)
	}
	for i := range l.Purged {
		r := &l.Purged[i]
		if r.Version == 0 || r.Since != 0 || r.At != 0 || r.By != 0 || r.Store != (digest{}) || r.Done ||
			r.Ended != 0 {
			return nil, fmt.Errorf("%w: row %d lacks a version, or has a field that only rows of wal/purges have", errRows, i)
		}
	}
	return l.Purged, nil
}

// AppendRow appends the line of wal/purges for a row.
func AppendRow(dst []byte, r *Row) ([]byte, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return dst, err
	}
	return appendSummed(dst, b), nil
}

// ParseRow parses a line of wal/purges. It returns false if the checksum of the line does not match, or if the line is
// not a valid row.
func ParseRow(b []byte) (r Row, ok bool) {
	b, ok = summed(b)
	if !ok || json.Unmarshal(b, &r) != nil || r.Version == 0 || r.Since == 0 {
		return Row{}, false
	}
	return r, true
}

// appendSummed appends rest as a line of the file, preceded by its checksum.
func appendSummed(dst, rest []byte) []byte {
	dst = fmt.Appendf(dst, "%016x ", xxhash.Sum64(rest))
	return append(append(dst, rest...), '\n')
}

// summed returns the content of a line without its checksum. It returns false if the checksum does not match.
func summed(b []byte) (rest []byte, ok bool) {
	b, whole := bytes.CutSuffix(b, []byte("\n"))
	sum, rest, found := bytes.Cut(b, []byte(" "))
	return rest, whole && found && string(sum) == fmt.Sprintf("%016x", xxhash.Sum64(rest))
}
