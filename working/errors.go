package working

import (
	"errors"
	"fmt"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
)

// The errors of working memory; test for them with errors.Is. Errors that a store returns too are
// the same values.
var (
	ErrNotFound       = errs.ErrNotFound       // no such checkpoint, or no such key if the operation requires one
	ErrConflict       = errs.ErrConflict       // see ConflictError
	ErrInvalid        = errs.ErrInvalid        // see FieldError
	ErrTooLarge       = errs.ErrTooLarge       // a key, a value or a text exceeds a limit
	ErrLimit          = errs.ErrLimit          // see LimitError
	ErrClosed         = errs.ErrClosed         // the Memory or its home was closed
	ErrPermission     = errs.ErrPermission     // wrong user or password, or an operation that is not permitted
	ErrReadOnly       = errs.ErrReadOnly       // the home does not accept writes now
	ErrCorrupt        = errs.ErrCorrupt        // see CorruptionError
	ErrOutcomeUnknown = errs.ErrOutcomeUnknown // the write may or may not have happened

	// ErrReserved means that a key begins with "_": these keys are reserved.
	ErrReserved = errors.New(`keys that begin with "_" are reserved`)
	// ErrUnavailable means that the home, such as a Redis server, cannot be reached. The operation was not performed.
	ErrUnavailable = errors.New("the server of the working memory cannot be reached")
	// ErrWrongType means that a key in Redis contains something other than working memory.
	ErrWrongType = errors.New("the key does not contain working memory")
	// ErrNotInteger means that a value cannot be incremented because it is not a 64-bit integer.
	ErrNotInteger = errors.New("not a 64-bit integer")
	// ErrOverflow means that the sum of an increment exceeds the range of a 64-bit integer.
	ErrOverflow = errors.New("the sum exceeds the range of a 64-bit integer")
)

// Error types of the store that working memory uses too; get them with errors.As.
type (
	FieldError      = errs.FieldError
	CorruptionError = errs.CorruptionError
)

// LimitError means that a write would exceed a limit of a scope. The error matches ErrLimit.
type LimitError struct {
	Scope Scope
	What  string // "keys" or "bytes"
	Limit int64
	Need  int64 // number that the scope would have after the write
}

func (e *LimitError) Error() string {
	option := map[string]string{"keys": "Keys", "bytes": "Bytes"}[e.What]
	return fmt.Sprintf("%v: the scope %s would have %d %s, but the limit is %d: delete values, raise Options.Max%s, "+
		"or set Options.Evict", errs.ErrLimit, e.Scope.Key(), e.Need, e.What, e.Limit, option)
}

func (e *LimitError) Unwrap() error { return errs.ErrLimit }

// ConflictError means that another writer has changed a value. The error matches ErrConflict.
type ConflictError struct {
	Name            string
	Expected, Found uint64 // versions of the value; 0: no value; both 0: the versions are unknown
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%v: %s", errs.ErrConflict, display(e.Name))
}

func (e *ConflictError) Unwrap() error {
	return &errs.ConflictError{ID: e.Name, Expected: e.Expected, Found: e.Found}
}

// CheckpointError means that a checkpoint cannot be read. The error matches all errors that Err matches, such as
// ErrNotFound and ErrCorrupt.
type CheckpointError struct {
	ID  string
	Err error
}

func (e *CheckpointError) Error() string {
	return "checkpoint " + human.Quote(e.ID) + ": " + e.Err.Error()
}
func (e *CheckpointError) Unwrap() error { return e.Err }
