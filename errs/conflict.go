package errs

import (
	"fmt"
	"time"

	"github.com/varve-db/varve/internal/human"
)

// ConflictError reports what a condition on a write expected and what was found. It matches ErrConflict. A
// conflict that does not concern a single document (a change of the embedding model) has no ConflictError.
type ConflictError struct {
	ID string // id of the memory or assembly; for working memory the key
	// the expected version; 0: no document (IfAbsent), or the condition is not on a version (Since, Hash)
	Expected uint64
	Found    uint64 // the newest version; 0: no document exists
	// For IfUnmodifiedSince: the time in the condition, and the time of the newest version.
	Since, Written time.Time
	// For IfHash: the sha256 of the expected content, and of the content of the newest version, as hexadecimal digits.
	Hash, FoundHash string
	Remedy          string // what the caller can do; "": read the current version and try again
}

// Error returns the message, in one line.
func (e *ConflictError) Error() string {
	id, remedy := human.Quote(e.ID), e.Remedy
	if remedy == "" {
		remedy = "read the current version and try again"
	}
	switch {
	case !e.Since.IsZero() || !e.Written.IsZero():
		return fmt.Sprintf("%v: %s was written at %s, as version %d, but must not have been written after %s: %s",
			ErrConflict, id,
			e.Written.UTC().Format(time.RFC3339Nano), e.Found, e.Since.UTC().Format(time.RFC3339Nano), remedy)
	case e.Hash != "":
		found := "the document does not exist (deleted, or never written)"
		if e.Found != 0 {
			found = fmt.Sprintf("found %s (version %d)", e.FoundHash, e.Found)
		}
		return fmt.Sprintf("%v: %s: expected content with sha256 %s, %s: %s", ErrConflict, id, e.Hash, found, remedy)
	case e.Found == 0:
		return fmt.Sprintf("conflict: %s: expected version %d, but the document does not exist (deleted, or never "+
			"written): %s", id,
			e.Expected, remedy)
	case e.Expected == 0:
		return fmt.Sprintf("conflict: %s exists as version %d, but was expected not to exist: %s", id, e.Found, remedy)
	}
	return fmt.Sprintf("%v: %s: expected version %d, found version %d: %s", ErrConflict, id, e.Expected, e.Found, remedy)
}

// Unwrap makes the error match ErrConflict.
func (e *ConflictError) Unwrap() error { return ErrConflict }
