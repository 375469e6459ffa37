package errs

import (
	"fmt"

	"github.com/varve-db/varve/internal/human"
)

// PurgedError reports that a document has a text that was purged. It matches ErrPurged.
type PurgedError struct {
	Kind string // "memory", "assembly"
	ID   string
}

// Error is the message, in one line.
func (e *PurgedError) Error() string {
	return fmt.Sprintf("%v: %s %s has a text that was removed from this store on purpose", ErrPurged, e.Kind,
		human.Quote(e.ID))
}

// Unwrap makes the error match ErrPurged.
func (e *PurgedError) Unwrap() error { return ErrPurged }
