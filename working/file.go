package working

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/jsondoc"
)

// File is the document of a scope as a store keeps it in a file: the state, the position of the scope in the log, and a
// checksum.
type File struct {
	Scope Scope
	State *State
	Store string    // UUID of the store to whose log LSN refers
	LSN   uint64    // position of the newest log entry that the state includes
	Whole uint64    // position of the newest log entry that does not depend on earlier entries; 0: unknown
	Time  time.Time // time of the log entry at LSN, which is also the file's mtime
	// Intact reports whether the checksum matches: then the file is as a store wrote it.
	Intact bool
}

type fileJSON struct {
	Store    string `json:"store"`
	LSN      uint64 `json:"lsn"`
	Whole    uint64 `json:"whole_at"`
	Time     micros `json:"updated_at"`
	Checksum string `json:"checksum"`
}

const checksumMember = ",\n  \"checksum\": \"sha256:"

// Encode returns the content of the file.
func (f *File) Encode() ([]byte, error) {
	doc, err := f.State.Encode(f.Scope)
	if err != nil {
		return nil, err
	}
	doc = bytes.TrimSuffix(doc, []byte("\n}\n"))
	doc = fmt.Appendf(doc, ",\n  \"store\": %q,\n  \"lsn\": %d", f.Store, f.LSN)
	if f.Whole != 0 {
		doc = fmt.Appendf(doc, ",\n  \"whole_at\": %d", f.Whole)
	}
	doc = jsondoc.AppendTime(append(doc, ",\n  \"updated_at\": "...), f.Time)
	sum := sha256.Sum256(doc)
	doc = append(doc, checksumMember...)
	doc = hex.AppendEncode(doc, sum[:])
	return append(doc, "\"\n}\n"...), nil
}

// DecodeFile decodes a file. If the file was edited by hand, Intact is false, and members that the State does not need
// may be missing.
func DecodeFile(doc []byte) (*File, error) {
	s, scope, err := DecodeState(doc)
	if err != nil {
		return nil, err
	}
	var j fileJSON
	if err := json.Unmarshal(doc, &j); err != nil {
		return nil, &errs.FieldError{Field: "document", Err: err}
	}
	f := &File{Scope: scope, State: s, Store: j.Store, LSN: j.LSN, Whole: j.Whole, Intact: intact(doc)}
	if j.Time != 0 {
		f.Time = fromMicro(int64(j.Time))
	}
	return f, nil
}

func intact(doc []byte) bool {
	const tail = len(checksumMember) + 2*sha256.Size + len("\"\n}\n")
	if len(doc) < tail {
		return false
	}
	body := doc[:len(doc)-tail]
	sum := sha256.Sum256(body)
	want := append(hex.AppendEncode([]byte(checksumMember), sum[:]), "\"\n}\n"...)
	return bytes.Equal(doc[len(body):], want)
}
