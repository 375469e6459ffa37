package docfile

import (
	"encoding/json"
	"time"
)

// Note says why a file lies in quarantine. It is written beside it as JSON.
type Note struct {
	Why     string    `json:"why"`
	When    time.Time `json:"when"`
	From    string    `json:"from"` // path in the store
	ID      string    `json:"id,omitempty"`
	Version uint64    `json:"version,omitempty"` // newest known when it was set aside

	// What was set aside; filled in by Quarantine.
	Size  int64     `json:"size"`
	Mtime time.Time `json:"mtime"`
	Hash  string    `json:"content_hash,omitempty"` // absent when it could not be read, or was not
	// NotHashed says why it was not read, as of a file that is larger than HashMost.
	NotHashed string `json:"not_hashed,omitempty"`

	Expected *Expected       `json:"expected,omitempty"` // what should have stood there
	Known    json.RawMessage `json:"known,omitempty"`    // the index line: session, times, score, hash
}

// Expected is what was believed of a file that turned out to be another.
type Expected struct {
	Size  int64     `json:"size"`
	Mtime time.Time `json:"mtime"`
	Hash  string    `json:"content_hash,omitempty"`
}

func (n Note) encode() ([]byte, error) {
	if len(n.Known) > 0 && !json.Valid(n.Known) {
		s, err := json.Marshal(string(n.Known)) // damaged, and all the more worth keeping
		if err != nil {
			return nil, err
		}
		n.Known = s
	}
	b, err := json.MarshalIndent(n, "", "  ")
	return append(b, '\n'), err
}
