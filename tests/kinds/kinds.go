package kinds

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/kind"
)

// Notes is the kind, once it is registered.
var Notes = &kind.Kind{Letter: 'q', Folder: "papers", Noun: "paper", Opaque: true, Paths: paths{}}

// Register adds Notes to the table.
func Register() error {
	Notes.Decode = decode
	return kind.Register(Notes)
}

// paths are the paths of notes: the path of a note is its id.
type paths struct{}

func (paths) Path(id string) string { return id }

func (paths) ID(path string) (id string, ok bool) { return path, isPath(path) }

func (paths) IsDocument(path string) bool { return isPath(path) && !strings.HasSuffix(path, "~") }

func (paths) IsOwn(path string, _ bool) bool { return isPath(path) }

func (paths) Tree() bool { return true }

// Fold returns the form in which a file system that ignores case compares paths.
func (paths) Fold(path string) string { return strings.ToLower(norm.NFC.String(path)) }

func isPath(path string) bool {
	return path != "." && fs.ValidPath(path) && !strings.HasPrefix(path, ".") && !strings.Contains(path, "/.")
}

func decode(data []byte, o kind.DecodeOptions) (kind.Content, error) {
	if err := jsondoc.CheckID("path", o.ID, o.Limits.Memory.IDBytes); err != nil {
		return kind.Content{}, err
	}
	if !isPath(o.ID) {
		return kind.Content{}, &errs.FieldError{Field: "path", Err: errors.New("not the path of a note")}
	}
	n := &note{path: o.ID}
	return kind.Content{ID: o.ID, Created: &n.created, Updated: &n.updated, Line: n.line}, nil
}

// note has what the index stores of a note besides its size and hash.
type note struct {
	path             string
	created, updated time.Time
}

// line returns the line of a note in the index.
func (n *note) line(doc []byte, _ int64) ([]byte, error) {
	dst := append(jsondoc.AppendEscaped([]byte(`{"filepath":"`), Notes.File(n.path)), `","created_at":`...)
	dst = jsondoc.AppendTime(dst, n.created.Truncate(time.Microsecond))
	dst = append(dst, `,"updated_at":`...)
	dst = jsondoc.AppendTime(dst, n.updated.Truncate(time.Microsecond))
	return fmt.Appendf(dst, `,"content_hash":"sha256:%x","size":%d,"dimension":0}`, sha256.Sum256(doc), len(doc)), nil
}
