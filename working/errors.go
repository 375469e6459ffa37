package working

import (
	"errors"
	"fmt"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
)

// The errors of working memory; test for them with errors.Is. Those that the
// store has too are the same values.
var (
	ErrNotFound       = errs.ErrNotFound       // no such checkpoint, or no such key where one is needed
	ErrConflict       = errs.ErrConflict       // see ConflictError
	ErrInvalid        = errs.ErrInvalid        // see FieldError
	ErrTooLarge       = errs.ErrTooLarge       // a key, a value or a text passes a limit
	ErrLimit          = errs.ErrLimit          // see LimitError
	ErrClosed         = errs.ErrClosed         // the Memory or its home was closed
	ErrPermission     = errs.ErrPermission     // wrong user or password, or the user may not
	ErrReadOnly       = errs.ErrReadOnly       // the home takes no writes now
	ErrCorrupt        = errs.ErrCorrupt        // see CorruptionError
	ErrOutcomeUnknown = errs.ErrOutcomeUnknown // the write may or may not have happened

	// ErrReserved: keys that begin with "_" belong to the system.
	ErrReserved = errors.New(`keys that begin with "_" are reserved`)
	// ErrUnavailable: the home cannot be reached, and nothing was done.
	ErrUnavailable = errors.New("the home of the working memory cannot be reached")
	// ErrWrongType: something else than working memory has the place.
	ErrWrongType = errors.New("the value is of another type")
	// ErrNotInteger: only an integer of 64 bits can be incremented.
	ErrNotInteger = errors.New("not an integer of 64 bits")
	// ErrOverflow: the sum passes 64 bits.
	ErrOverflow = errors.New("the sum does not fit into 64 bits")
)

// The error types; reach them with errors.As.
type (
	FieldError      = errs.FieldError
	CorruptionError = errs.CorruptionError
)

// LimitError says which limit of a scope a write would pass. It matches ErrLimit.
type LimitError struct {
	Scope Scope
	What  string // "keys" or "bytes"
	Limit int64
	Need  int64 // how many there would be
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%v: %s of %s: %d, the limit is %d; delete or expire some, raise Options.Max%s, or set "+
		"Options.Evict",
		errs.ErrLimit, e.What, e.Scope.Key(), e.Need, e.Limit, map[string]string{"keys": "Keys", "bytes": "Bytes"}[e.What])
}

func (e *LimitError) Unwrap() error { return errs.ErrLimit }

// ConflictError says which value was changed meanwhile. It matches ErrConflict.
type ConflictError struct {
	Name            string
	Expected, Found uint64 // versions, 0: that there is none; both 0: the home does not say
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%v: %s", errs.ErrConflict, display(e.Name))
}

func (e *ConflictError) Unwrap() error {
	return &errs.ConflictError{ID: e.Name, Expected: e.Expected, Found: e.Found}
}

// CheckpointError names the checkpoint that could not be read. It matches what Err matches:
// ErrNotFound, ErrCorrupt.
type CheckpointError struct {
	ID  string
	Err error
}

func (e *CheckpointError) Error() string {
	return "checkpoint " + human.Quote(e.ID) + ": " + e.Err.Error()
}
func (e *CheckpointError) Unwrap() error { return e.Err }
