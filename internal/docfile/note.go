package docfile

import (
	"encoding/json"
	"time"
)

// Note explains why a file is in quarantine. The note is written as a JSON file beside the file in quarantine.
type Note struct {
	Why  string    `json:"why"`
	When time.Time `json:"when"`
	From string    `json:"from"` // former path of the file in the store
	ID   string    `json:"id,omitempty"`
	// newest version of the document that was known when the file was moved to quarantine
	Version uint64 `json:"version,omitempty"`

	// Size and the fields below describe the file in quarantine. The methods of Quarantine set them.
	Size  int64     `json:"size"`
	Mtime time.Time `json:"mtime"`
	// hash of the file's bytes; absent if the file was not read, or could not be read
	Hash string `json:"content_hash,omitempty"`
	// NotHashed is the reason why the file was not read: for example, it is larger than HashMost.
	NotHashed string `json:"not_hashed,omitempty"`

	Expected *Expected       `json:"expected,omitempty"` // description of the file that was expected at the path
	Known    json.RawMessage `json:"known,omitempty"`    // the document's line in the index: session, times, score, hash
}

// Expected describes the file that was expected at a path. A different file was found there.
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
