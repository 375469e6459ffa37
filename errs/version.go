package errs

import (
	"fmt"

	"github.com/varve-db/varve/internal/human"
)

// NoVersionError reports that a memory or an assembly does not have the requested version. It
// matches ErrNotFound.
type NoVersionError struct {
	Kind    string // "memory" or "assembly"
	ID      string
	Version uint64 // the requested version
	Oldest  uint64 // the oldest version of the document that is kept, 0 when none is
	Newest  uint64 // the newest version of the document, 0 when none is kept
}

// Error returns the message, in one line.
func (e *NoVersionError) Error() string {
	s := fmt.Sprintf("%s %s has no version %d", e.Kind, human.Quote(e.ID), e.Version)
	switch {
	case e.Oldest == 0:
		return s + "; no version is kept"
	case e.Oldest == e.Newest:
		return fmt.Sprintf("%s; the only version kept is %d", s, e.Oldest)
	}
	return fmt.Sprintf("%s; the versions kept are %d to %d", s, e.Oldest, e.Newest)
}

// Unwrap makes the error match ErrNotFound.
func (e *NoVersionError) Unwrap() error { return ErrNotFound }
