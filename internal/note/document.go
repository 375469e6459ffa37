package note

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/record"
)

// Document has the properties of a note or of a sidecar from which the line in the index is made.
type Document struct {
	ID               string // id in the log
	Created, Updated time.Time
}

// Decode checks the id and the bytes of a note or of a sidecar. limit is the maximum number of bytes (0: no limit).
// A note may have any bytes; a sidecar must be valid.
func Decode(data []byte, id string, limit int64) (*Document, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	if limit > 0 && int64(len(data)) > limit {
		return nil, &errs.FieldError{Field: "content", Value: fmt.Sprintf("%d bytes", len(data)),
			Limit: fmt.Sprintf("%d bytes", limit), Err: errs.ErrTooLarge}
	}
	if IsSidecar(id) {
		if _, err := DecodeSidecar(data); err != nil {
			return nil, err
		}
	}
	return &Document{ID: id}, nil
}

// Line returns the index entry of the document doc as JSON, without mtime and version; see package index.
func (d *Document) Line(doc []byte, _ int64) ([]byte, error) {
	dst := append(jsondoc.AppendEscaped([]byte(`{"filepath":"`), record.NoteFolder+"/"+System().Path(d.ID)),
		`","created_at":`...)
	dst = jsondoc.AppendTime(dst, d.Created.Truncate(time.Microsecond))
	dst = append(dst, `,"updated_at":`...)
	dst = jsondoc.AppendTime(dst, d.Updated.Truncate(time.Microsecond))
	return fmt.Appendf(dst, `,"content_hash":"sha256:%x","size":%d,"dimension":0}`, sha256.Sum256(doc), len(doc)), nil
}

// Fold returns the form of a note's path in which paths are equal if a case-insensitive file system treats them as
// equal.
func (n Names) Fold(path string) string { return strings.ToLower(norm.NFC.String(path)) }
