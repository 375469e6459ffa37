package errs

import (
	"cmp"
	"fmt"
)

// PurgedError reports that the text of a document was purged from the store. It matches ErrPurged.
type PurgedError struct {
	Kind string // "memory", "assembly"
	ID   string
}

// Error returns the message, in one line. It does not name the document; the function that returns the error adds its
// name.
func (e *PurgedError) Error() string {
	return fmt.Sprintf("%v: the text of this %s was removed from the store on purpose", ErrPurged,
		cmp.Or(e.Kind, "document"))
}

// Unwrap makes the error match ErrPurged.
func (e *PurgedError) Unwrap() error { return ErrPurged }
