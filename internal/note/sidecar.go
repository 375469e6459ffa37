package note

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/varve-db/varve/errs"
)

// sidecarHead begins the id of a sidecar in the log: an element that no path of a note has.
const sidecarHead = "./"

// SidecarOf returns the id of the sidecar of the note at a path.
func SidecarOf(path string) string { return sidecarHead + path }

// IsSidecar reports whether an id in the log is that of a sidecar.
func IsSidecar(id string) bool { return strings.HasPrefix(id, sidecarHead) }

// Owner returns the path of the note that a sidecar belongs to; false for the path of a note.
func Owner(id string) (string, bool) { return strings.CutPrefix(id, sidecarHead) }

// Companion returns the id of the sidecar of a note; false for the id of a sidecar.
func Companion(id string) (string, bool) { return SidecarOf(id), !IsSidecar(id) }

// Moved returns the sidecar of a note that was at a path, up to a version; The parameter had is the sidecar that the
// note had there, empty if it had none.
func Moved(from string, last uint64, had []byte) ([]byte, error) {
	var s Sidecar
	if len(had) > 0 {
		var err error
		if s, err = DecodeSidecar(had); err != nil {
			return nil, err
		}
	}
	s = s.Moved(from, last)
	return s.Encode()
}

// Moved returns the sidecar of the note when it is at another path: it was at one, up to a version.
func (s *Sidecar) Moved(from string, last uint64) Sidecar {
	next := s.Clone()
	if next.ID == "" {
		next.ID = ID(from)
	}
	next.Moves = append(next.Moves, Move{Path: from, Version: last})
	return next
}

// FirstAfterSidecars is greater than the ids of all sidecars, and less than those of notes behind them.
const FirstAfterSidecars = sidecarHead + "\U0010FFFF"

// checkID refuses what is neither the path of a note nor the id of a sidecar.
func checkID(id string) error { return CheckPath(strings.TrimPrefix(id, sidecarHead)) }

// MostMoves is how many renames a sidecar has: of more, the oldest are dropped.
const MostMoves = 100

// Move is where a note was before a rename.
type Move struct {
	Path    string `json:"path"`
	Version uint64 `json:"version"` // the last one at that path
}

// Sidecar are the properties of a note that are not those of every note at its path. The zero value is a note
// without any.
type Sidecar struct {
	ID       string         // "": ID of the path
	Moves    []Move         // the oldest first
	Session  string         // "" for none
	Expires  time.Time      // zero: never
	Tags     []string       // sorted, each once
	Metadata map[string]any // values as package json decodes them
}

// sidecarJSON is the form of the file.
type sidecarJSON struct {
	ID       string         `json:"id,omitzero"`
	Moves    []Move         `json:"moves,omitempty"`
	Session  string         `json:"session_id,omitzero"`
	Expires  time.Time      `json:"expires_at,omitzero"`
	Tags     []string       `json:"tags,omitempty"`
	Metadata map[string]any `json:"metadata,omitempty"`
}

// IsZero reports whether a note needs no sidecar.
func (s *Sidecar) IsZero() bool {
	return s.ID == "" && len(s.Moves) == 0 && s.Session == "" && s.Expires.IsZero() && len(s.Tags) == 0 &&
		len(s.Metadata) == 0
}

// Clone returns a copy that shares nothing but the values of the metadata.
func (s *Sidecar) Clone() Sidecar {
	c := *s
	c.Moves, c.Tags, c.Metadata = slices.Clone(s.Moves), slices.Clone(s.Tags), maps.Clone(s.Metadata)
	return c
}

// Encode returns the bytes of the file.
func (s *Sidecar) Encode() ([]byte, error) {
	f := sidecarJSON(s.Clone())
	slices.Sort(f.Tags)
	f.Tags, f.Expires = slices.Compact(f.Tags), f.Expires.UTC()
	f.Moves = f.Moves[max(0, len(f.Moves)-MostMoves):]
	data, err := json.Marshal(&f, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return nil, &errs.FieldError{Field: "metadata", Err: err}
	}
	data = append(data, '\n')
	_, err = DecodeSidecar(data)
	return data, err
}

// DecodeSidecar reads the bytes of a file. Members that it does not know are an error: they would be lost.
func DecodeSidecar(data []byte) (Sidecar, error) {
	var f sidecarJSON
	if err := json.Unmarshal(bytes.TrimPrefix(data, []byte("\uFEFF")), &f, json.RejectUnknownMembers(true)); err != nil {
		return Sidecar{}, fmt.Errorf("%w: not the properties of a note: %w", errs.ErrInvalid, err)
	}
	if f.ID != "" {
		if err := uuid.Validate(f.ID); err != nil {
			return Sidecar{}, &errs.FieldError{Field: "id", Err: errors.New("must be a UUID")}
		}
	}
	for _, m := range f.Moves {
		if err := CheckPath(m.Path); err != nil {
			return Sidecar{}, err
		}
	}
	return Sidecar(f), nil
}
