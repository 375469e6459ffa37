package errs

import (
	"fmt"
	"time"

	"github.com/varve-db/varve/internal/human"
)

// RedactedError reports that the content of one version of a memory or an assembly was removed on purpose. The other
// versions of the document remain. RedactedError matches ErrRedacted.
type RedactedError struct {
	Kind    string // "memory" or "assembly"
	ID      string
	Version uint64
	At      time.Time // time of the removal
}

// Error returns the message, in one line.
func (e *RedactedError) Error() string {
	return fmt.Sprintf("version %d of %s %s is %v: the content was removed on purpose, at %s", e.Version, e.Kind,
		human.Quote(e.ID), ErrRedacted, e.At.UTC().Format(time.RFC3339))
}

// Unwrap makes the error match ErrRedacted.
func (e *RedactedError) Unwrap() error { return ErrRedacted }
