package docfile

import (
	"encoding/json"
	"time"
)

// Note records why a file is in quarantine. It is written beside the file as JSON.
type Note struct {
	Why     string    `json:"why"`
	When    time.Time `json:"when"`
	From    string    `json:"from"` // path in the store
	ID      string    `json:"id,omitempty"`
	Version uint64    `json:"version,omitempty"` // newest known version of the document when the file was set aside

	// Size and the fields below describe the file that was set aside; Quarantine sets them.
	Size  int64     `json:"size"`
	Mtime time.Time `json:"mtime"`
	// hash of the file; absent if the file was not or could not be read
	Hash string `json:"content_hash,omitempty"`
	// NotHashed is the reason for which the file was not read, such as that it is larger than HashMost.
	NotHashed string `json:"not_hashed,omitempty"`

	Expected *Expected       `json:"expected,omitempty"` // the file that should have been in the place
	Known    json.RawMessage `json:"known,omitempty"`    // the document's index line: session, times, score, hash
}

// Expected describes the file that was expected in the place of a different one.
type Expected struct {
	Size  int64     `json:"size"`
	Mtime time.Time `json:"mtime"`
	Hash  string    `json:"content_hash,omitempty"`
}

func (n Note) encode() ([]byte, error) {
	if len(n.Known) > 0 && !json.Valid(n.Known) {
		s, err := json.Marshal(string(n.Known)) // damaged, which is a further reason to keep it
		if err != nil {
			return nil, err
		}
		n.Known = s
	}
	b, err := json.MarshalIndent(n, "", "  ")
	return append(b, '\n'), err
}
