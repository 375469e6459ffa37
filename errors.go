package varve

import (
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/vector"
)

// The errors of the store; test for them with errors.Is.
var (
	ErrNotFound  = errs.ErrNotFound    // no such memory
	ErrConflict  = errs.ErrConflict    // a condition of the write did not hold: see ConflictError
	ErrDimension = vector.ErrDimension // an embedding does not have the store's number of dimensions
	ErrClosed    = errs.ErrClosed      // the store was closed
	ErrReadOnly  = errs.ErrReadOnly    // the store was opened read-only, or the durable part of its log is damaged
	// the disk is full: deletions still work; writes work again once there is space
	ErrDiskFull       = errs.ErrDiskFull
	ErrPermission     = errs.ErrPermission     // the system refuses access: the message has path, mode and owner
	ErrLocked         = errs.ErrLocked         // see LockError
	ErrTooLarge       = errs.ErrTooLarge       // one memory exceeds a limit
	ErrBatchTooLarge  = errs.ErrBatchTooLarge  // a batch needs more than half a segment of the log
	ErrInvalid        = errs.ErrInvalid        // see FieldError
	ErrNoStore        = errs.ErrNoStore        // the folder is not a store
	ErrNewerFormat    = errs.ErrNewerFormat    // written by a newer version of this library
	ErrSyncFailed     = errs.ErrSyncFailed     // the disk refuses to sync; reads still work
	ErrTooManyFiles   = errs.ErrTooManyFiles   // the process or the system cannot open more files; nothing was changed
	ErrOutcomeUnknown = errs.ErrOutcomeUnknown // it is unknown whether the write has happened
	ErrHistoryGone    = errs.ErrHistoryGone    // the log was lost, and the new log does not have the requested history
	ErrTruncated      = errs.ErrTruncated      // the log no longer has the requested history
	ErrCopyBehind     = errs.ErrCopyBehind     // a copy elsewhere lacks a part of the log that was removed here
	ErrLimit          = errs.ErrLimit          // a limit in config.json is reached
	ErrPurged         = errs.ErrPurged         // the document or version, or a text to be put, was purged: PurgedError
	ErrRedacted       = errs.ErrRedacted       // the version was removed on purpose: see RedactedError
	ErrSession        = errs.ErrSession        // the memory belongs to another session
	ErrCorrupt        = errs.ErrCorrupt        // see CorruptionError
	ErrModel          = errs.ErrModel          // see ModelError
	ErrEmbedderDown   = errs.ErrEmbedderDown   // see EmbedderError
	ErrMoved          = errs.ErrMoved          // see MovedError
	// the folder of the open store was removed, renamed or replaced: open it again
	ErrReplaced = errs.ErrReplaced
	// returned by the function of Update or Transact: ends the call without writing and without an error
	ErrSkip = errs.ErrSkip
)

// These are the types of the errors of the store, declared in package errs. errors.As finds such an error in the error
// that a call has returned.
type (
	CorruptionError     = errs.CorruptionError
	FieldError          = errs.FieldError
	LockError           = errs.LockError
	BatchError          = errs.BatchError
	SessionError        = errs.SessionError
	PurgedError         = errs.PurgedError
	RedactedError       = errs.RedactedError
	LimitError          = errs.LimitError
	InflatedError       = errs.InflatedError
	UnfiledError        = errs.UnfiledError
	TruncatedError      = errs.TruncatedError
	CopyBehindError     = errs.CopyBehindError
	MovedError          = errs.MovedError
	EmptiedError        = errs.EmptiedError
	LinkedError         = errs.LinkedError
	NewerError          = errs.NewerError
	FeatureError        = errs.FeatureError
	HistoryGoneError    = errs.HistoryGoneError
	GapError            = errs.GapError
	DiskFullError       = errs.DiskFullError
	PermissionError     = errs.PermissionError
	ConflictError       = errs.ConflictError
	ModelError          = errs.ModelError
	EmbedderError       = errs.EmbedderError
	NoVersionError      = errs.NoVersionError
	MissingMembersError = errs.MissingMembersError
)
