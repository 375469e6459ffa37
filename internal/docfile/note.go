package docfile

import (
	"encoding/json"
	"time"
)

// Note says why a file is in quarantine. It is written beside the file as JSON.
type Note struct {
	Why     string    `json:"why"`
	When    time.Time `json:"when"`
	From    string    `json:"from"` // path in the store
	ID      string    `json:"id,omitempty"`
	Version uint64    `json:"version,omitempty"` // newest known when it was set aside

	// Size and the fields below describe what was set aside; Quarantine fills them in.
	Size  int64     `json:"size"`
	Mtime time.Time `json:"mtime"`
	Hash  string    `json:"content_hash,omitempty"` // absent when the file could not be read, or was not
	// NotHashed says why it was not read, as of a file that is larger than HashMost.
	NotHashed string `json:"not_hashed,omitempty"`

	Expected *Expected       `json:"expected,omitempty"` // what should have been in the place
	Known    json.RawMessage `json:"known,omitempty"`    // the index line: session, times, score, hash
}

// Expected is what was expected of a file that turned out to be different.
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
