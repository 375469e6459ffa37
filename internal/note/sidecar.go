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

// sidecarHead is the prefix of the ids of sidecars in the log. No path of a note begins with it.
const sidecarHead = "./"

// SidecarOf returns the id of the sidecar of the note at a path.
func SidecarOf(path string) string { return sidecarHead + path }

// IsSidecar reports whether an id in the log is the id of a sidecar.
func IsSidecar(id string) bool { return strings.HasPrefix(id, sidecarHead) }

// Owner returns the path of the note to which the sidecar with this id belongs. It returns false if id is the path of a
// note.
func Owner(id string) (string, bool) { return strings.CutPrefix(id, sidecarHead) }

// Companion returns the id of the sidecar of the note at a path. It returns false if id is the id of a sidecar.
func Companion(id string) (string, bool) { return SidecarOf(id), !IsSidecar(id) }

// Moved returns the encoded sidecar of a note after the note was moved away from the path from. last is the last
// version of the note at this path. prev is the encoded sidecar of the note at this path; it is empty if the note
// had no sidecar.
func Moved(from string, last uint64, prev []byte) ([]byte, error) {
	var s Sidecar
	if len(prev) > 0 {
		var err error
		if s, err = DecodeSidecar(prev); err != nil {
			return nil, err
		}
	}
	s = s.Moved(from, last)
	return s.Encode()
}

// Moved returns the sidecar of a note after the note was moved away from the path from. s is the sidecar before the
// move, and last is the last version of the note at the path from.
func (s *Sidecar) Moved(from string, last uint64) Sidecar {
	next := s.Clone()
	if next.ID == "" {
		next.ID = ID(from)
	}
	next.Moves = append(next.Moves, Move{Path: from, Version: last})
	return next
}

// FirstAfterSidecars is the end of the range of the ids of sidecars. It is greater than the ids of all sidecars, and
// less than all paths of notes that are greater than these ids.
const FirstAfterSidecars = sidecarHead + "\U0010FFFF"

// checkID returns an error for an id that is neither the path of a note nor the id of a sidecar.
func checkID(id string) error { return CheckPath(strings.TrimPrefix(id, sidecarHead)) }

// MostMoves is the maximum number of renames that a sidecar records; the oldest are dropped.
const MostMoves = 100

// Move records a rename: the path of the note before it, and the last version at that path.
type Move struct {
	Path    string `json:"path"`
	Version uint64 `json:"version"` // last version of the note at Path
}

// Sidecar has the properties of a note that do not follow from its path. The zero value is a note without such
// properties.
type Sidecar struct {
	ID       string         // id of the note; "": the id that follows from the path
	Moves    []Move         // renames of the note, the oldest first
	Session  string         // session of the note; "": none
	Expires  time.Time      // time at which the note expires; zero: never
	Tags     []string       // tags, sorted and without duplicates
	Metadata map[string]any // metadata values, as package json decodes them
}

// sidecarJSON is the JSON form of a Sidecar in its file.
type sidecarJSON struct {
	ID       string         `json:"id,omitzero"`
	Moves    []Move         `json:"moves,omitempty"`
	Session  string         `json:"session_id,omitzero"`
	Expires  time.Time      `json:"expires_at,omitzero"`
	Tags     []string       `json:"tags,omitempty"`
	Metadata map[string]any `json:"metadata,omitempty"`
}

// IsZero reports whether s has no properties, so that the note needs no sidecar.
func (s *Sidecar) IsZero() bool {
	return s.ID == "" && len(s.Moves) == 0 && s.Session == "" && s.Expires.IsZero() && len(s.Tags) == 0 &&
		len(s.Metadata) == 0
}

// Clone returns a copy of s. The copy shares only the values in Metadata with s.
func (s *Sidecar) Clone() Sidecar {
	c := *s
	c.Moves, c.Tags, c.Metadata = slices.Clone(s.Moves), slices.Clone(s.Tags), maps.Clone(s.Metadata)
	return c
}

// Encode returns the content of the sidecar's file.
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

// DecodeSidecar decodes the content of a sidecar's file. Unknown members are an error, because they would be
// lost at the next write.
func DecodeSidecar(data []byte) (Sidecar, error) {
	var f sidecarJSON
	if err := json.Unmarshal(bytes.TrimPrefix(data, []byte("\uFEFF")), &f, json.RejectUnknownMembers(true)); err != nil {
		return Sidecar{}, fmt.Errorf("%w: the file is not a valid sidecar of a note: %w", errs.ErrInvalid, err)
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
