package kinds

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/kind"
)

// Note is a document of the kind.
type Note struct {
	ID      string    `json:"note_id"`
	Text    string    `json:"text"`
	Created time.Time `json:"created_at"`
	Updated time.Time `json:"updated_at"`
}

// Notes is the kind, once it is registered.
var Notes = &kind.Kind{Letter: 'o', Folder: "notes", Noun: "note", IDName: "note_id"}

// Register adds Notes to the table.
func Register() error {
	Notes.Decode = decode
	return kind.Register(Notes)
}

// Encode is the document of a note, as its file has it.
func (n *Note) Encode() ([]byte, error) {
	b, err := json.MarshalIndent(n, "", "  ")
	return append(b, '\n'), err
}

func decode(data []byte, o kind.DecodeOptions) (kind.Content, error) {
	n := new(Note)
	if err := json.Unmarshal(data, n); err != nil {
		return kind.Content{}, fmt.Errorf("%w: %w", errs.ErrInvalid, err)
	}
	if err := jsondoc.CheckDocumentID("note_id", n.ID, o.ID, o.IDOptional, o.Limits.Memory.IDBytes); err != nil {
		return kind.Content{}, err
	}
	if n.Text == "" {
		return kind.Content{}, &errs.FieldError{Field: "text", Err: errors.New("a note has a text")}
	}
	return kind.Content{ID: n.ID, Created: &n.Created, Updated: &n.Updated, Line: n.line}, nil
}

// line is the line of a note in the index.
func (n *Note) line(doc []byte, _ int64) ([]byte, error) {
	dst := []byte(`{"filepath":"` + Notes.File(n.ID) + `","created_at":`)
	dst = jsondoc.AppendTime(dst, n.Created.Truncate(time.Microsecond))
	dst = append(dst, `,"updated_at":`...)
	dst = jsondoc.AppendTime(dst, n.Updated)
	return fmt.Appendf(dst, `,"content_hash":"sha256:%x","size":%d,"dimension":0}`, sha256.Sum256(doc), len(doc)), nil
}
