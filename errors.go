package varve

import (
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/vector"
)

// The errors of the store; test for them with errors.Is.
var (
	ErrNotFound       = errs.ErrNotFound       // no such memory
	ErrConflict       = errs.ErrConflict       // a condition did not hold: see ConflictError
	ErrDimension      = vector.ErrDimension    // an embedding does not have the store's number of dimensions
	ErrClosed         = errs.ErrClosed         // the store was closed
	ErrReadOnly       = errs.ErrReadOnly       // opened read-only, or damaged below what was durable
	ErrDiskFull       = errs.ErrDiskFull       // deletes still work; service returns by itself
	ErrPermission     = errs.ErrPermission     // the system refuses; the message has path, mode and owner
	ErrLocked         = errs.ErrLocked         // see LockError
	ErrTooLarge       = errs.ErrTooLarge       // one memory passes a limit
	ErrBatchTooLarge  = errs.ErrBatchTooLarge  // a batch passes half a segment
	ErrInvalid        = errs.ErrInvalid        // see FieldError
	ErrNoStore        = errs.ErrNoStore        // the folder holds no store
	ErrNewerFormat    = errs.ErrNewerFormat    // written by a newer version of this library
	ErrSyncFailed     = errs.ErrSyncFailed     // the disk refuses to sync; reads go on
	ErrTooManyFiles   = errs.ErrTooManyFiles   // nothing was tried; it is as soon as files can be opened
	ErrOutcomeUnknown = errs.ErrOutcomeUnknown // the write may or may not have happened
	ErrTruncated      = errs.ErrTruncated      // the log no longer reaches back so far
	ErrLimit          = errs.ErrLimit          // a limit of config.json is reached
	ErrSession        = errs.ErrSession        // it belongs to another session
	ErrCorrupt        = errs.ErrCorrupt        // see CorruptionError
	ErrModel          = errs.ErrModel          // see ModelError
	ErrMoved          = errs.ErrMoved          // see MovedError
	ErrSkip           = errs.ErrSkip           // returned by the function of Update or Transact: ends it without writing and without an error
)

// The error types of the store; reach them with errors.As.
type (
	CorruptionError     = errs.CorruptionError
	FieldError          = errs.FieldError
	LockError           = errs.LockError
	BatchError          = errs.BatchError
	SessionError        = errs.SessionError
	LimitError          = errs.LimitError
	TruncatedError      = errs.TruncatedError
	MovedError          = errs.MovedError
	NewerError          = errs.NewerError
	FeatureError        = errs.FeatureError
	DiskFullError       = errs.DiskFullError
	PermissionError     = errs.PermissionError
	ConflictError       = errs.ConflictError
	ModelError          = errs.ModelError
	NoVersionError      = errs.NoVersionError
	MissingMembersError = errs.MissingMembersError
)
