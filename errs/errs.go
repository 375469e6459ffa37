package errs

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/varve-db/varve/internal/human"
)

// The errors that callers test for with errors.Is.
var (
	// ErrNotFound: there is no such memory, assembly, session, scope or version.
	ErrNotFound = errors.New("not found")
	// ErrConflict: a condition on a write did not hold. See ConflictError.
	ErrConflict = errors.New("conflict: changed meanwhile")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("the store is closed")
	// ErrReadOnly: the store was opened read-only, or the durable part of its log is damaged.
	ErrReadOnly = errors.New("the store is read-only")
	// ErrDiskFull: the disk has no free space. Deletions still work; writes work again once there
	// is space. See DiskFullError.
	ErrDiskFull = errors.New("disk full")
	// ErrPermission: the operating system refuses access to a file. See PermissionError.
	ErrPermission = errors.New("permission denied")
	// ErrLocked: another process holds a lock. See LockError.
	ErrLocked = errors.New("locked by another process")
	// ErrTooLarge: one document exceeds a limit. See FieldError.
	ErrTooLarge = errors.New("too large")
	// ErrBatchTooLarge: a batch is larger than half a segment of the log.
	ErrBatchTooLarge = errors.New("batch too large")
	// ErrInvalid: the input is not valid. See FieldError.
	ErrInvalid = errors.New("invalid")
	// ErrNoStore: the folder is not a store.
	ErrNoStore = errors.New("no store here")
	// ErrNewerFormat: a newer version of this library wrote the store. See NewerError and
	// FeatureError.
	ErrNewerFormat = errors.New("written by a newer version of this program: use that version or a later one")
	// ErrSyncFailed: the disk refuses to sync the log. Reads continue; writes wait until a sync succeeds.
	ErrSyncFailed = errors.New("the disk did not accept a sync; writes wait until a sync succeeds")
	// ErrTooManyFiles: no more files can be opened. Nothing was changed; repeat the call later.
	ErrTooManyFiles = errors.New("too many open files in this process or the system: close some, or raise the limit " +
		"(ulimit -n)")
	// ErrOutcomeUnknown: it is unknown whether the write has happened.
	ErrOutcomeUnknown = errors.New("outcome unknown: the write may or may not have happened")
	// ErrTruncated: the log and its archive no longer reach back to the requested position. See TruncatedError.
	ErrTruncated = errors.New("no longer in the log")
	// ErrHistoryGone: the log was lost, and the store continues with a new one. What was written before the new log is
	// in neither the log nor the archive. An error that matches ErrHistoryGone also matches ErrTruncated. See
	// HistoryGoneError.
	ErrHistoryGone = errors.New("the history is gone")
	// ErrCopyBehind: a copy of the store elsewhere lacks a part of the log that is no longer kept. See
	// CopyBehindError.
	ErrCopyBehind = errors.New("the copy of the store elsewhere is too far behind")
	// ErrLimit: a limit of config.json, or of the operation, is reached. See LimitError.
	ErrLimit = errors.New("limit reached")
	// ErrPurged: the requested document or version was purged from this store, or a write has a text that was purged.
	// See PurgedError.
	ErrPurged = errors.New("purged")
	// ErrRedacted: the content of the version was removed on purpose. See RedactedError.
	ErrRedacted = errors.New("redacted")
	// ErrSession: the memory belongs to another session. See SessionError.
	ErrSession = errors.New("belongs to another session")
	// ErrCorrupt: stored data is damaged. See CorruptionError.
	ErrCorrupt = errors.New("corrupt")
	// ErrMoved: the store was moved to another folder. See MovedError.
	ErrMoved = errors.New("the store was moved")
	// ErrReplaced: the folder of an open store was removed, renamed or replaced by another one. The store writes
	// nothing more to its folder; everything that was acknowledged before can be read until Close.
	ErrReplaced = errors.New("the store's folder was replaced: open it again")
	// ErrSkip ends a call of Update or Transact without a write and without an error, if the callback returns it.
	ErrSkip = errors.New("skip")
)

// CorruptionError reports where damage was found. It matches ErrCorrupt.
type CorruptionError struct {
	Path    string // file, relative to the store
	Segment uint64 // number of the segment, 0 if the file is not a segment
	Offset  int64  // byte offset in the file, -1 if the whole file is meant
	LSN     uint64 // position in the log, 0 when unknown
	Err     error  // what is wrong
}

// Error returns the message, in one line.
func (e *CorruptionError) Error() string {
	s := "damaged: " + e.Path
	if e.Offset >= 0 {
		s += fmt.Sprintf(" at byte %d", e.Offset)
	}
	if e.LSN != 0 {
		s += fmt.Sprintf(" (LSN %d)", e.LSN)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns ErrCorrupt, and the cause if there is one.
func (e *CorruptionError) Unwrap() []error { return appendErr([]error{ErrCorrupt}, e.Err) }

// FieldError reports which member of the input was refused, and why. It matches ErrInvalid, and
// also ErrTooLarge if Err does.
type FieldError struct {
	Field string // name of the refused member in JSON: "id", "embedding[3]"
	Value string // the refused value, shortened
	Limit string // the limit that was exceeded; "" if no limit was
	Err   error  // the reason for the refusal
}

// Error returns the message, in one line.
func (e *FieldError) Error() string {
	s := e.Field
	if e.Value != "" {
		s += " " + e.Value
	}
	s += ": " + e.Err.Error()
	if e.Limit != "" {
		s += " (limit: " + e.Limit + ")"
	}
	return s
}

// Unwrap returns ErrInvalid, and the cause if there is one.
func (e *FieldError) Unwrap() []error { return appendErr([]error{ErrInvalid}, e.Err) }

// Holder is a process that holds a lock.
type Holder struct {
	PID          int       // process id, 0 when unknown
	Command      string    // the name of its program, "" when unknown
	Host         string    // the name of its machine, "" when unknown
	PIDNamespace string    // the PID namespace as the system names it, "" if the system has no such namespaces
	Since        time.Time // when it took the lock, zero when unknown
}

// String describes the process for a message.
func (h Holder) String() string {
	if h.PID == 0 {
		return "an unknown process"
	}
	s := fmt.Sprintf("process %d", h.PID)
	if h.Command != "" {
		s += " (" + h.Command + ")"
	}
	if h.Host != "" {
		s += " on " + h.Host
	}
	if h.PIDNamespace != "" {
		s += " in " + h.PIDNamespace
	}
	if !h.Since.IsZero() {
		s += " since " + h.Since.UTC().Format(time.RFC3339)
	}
	return s
}

// EmptiedError reports a folder that has the log of a store, but neither its config.json nor any of its documents, like
// the working tree of a git branch without the store. No store was created there. It matches ErrNoStore.
type EmptiedError struct {
	Path string // the folder
}

// Error returns the message, in one line.
func (e *EmptiedError) Error() string {
	return fmt.Sprintf("%v: %s has the log of a store, but config.json and all documents are gone, as in a git branch "+
		"without the store; nothing was created",
		ErrNoStore, e.Path)
}

// Unwrap makes the error match ErrNoStore.
func (e *EmptiedError) Unwrap() error { return ErrNoStore }

// LockError reports which lock could not be taken and which process holds it. It matches ErrLocked, and what Err
// matches.
type LockError struct {
	Path   string // the lock file, or a file on which another process has a lease
	Holder Holder // the process that has the lock or the lease
	Err    error  // the reason why the wait ended: an error of a context, or nil
}

// Error returns the message, in one line.
func (e *LockError) Error() string {
	s := fmt.Sprintf("%s is locked by %s", e.Path, e.Holder)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns ErrLocked, and the cause if there is one.
func (e *LockError) Unwrap() []error { return appendErr([]error{ErrLocked}, e.Err) }

// SessionError reports the session of a memory, and the session to which a write or a read was
// confined. It matches ErrSession.
type SessionError struct {
	Session string // session of the memory, "" when it has none
	Wanted  string // the session to which the operation was confined
}

// Error returns the message, in one line.
func (e *SessionError) Error() string {
	if e.Session == "" {
		return fmt.Sprintf("belongs to no session, and not to session %s", human.Quote(e.Wanted))
	}
	return fmt.Sprintf("belongs to session %s, not to session %s", human.Quote(e.Session), human.Quote(e.Wanted))
}

// Unwrap makes the error match ErrSession.
func (e *SessionError) Unwrap() error { return ErrSession }

// LimitError reports which limit a write would have exceeded. It matches ErrLimit.
type LimitError struct {
	Session string // the session that has the limit, "" for a limit of the store
	What    string // "memories" or "bytes"
	Setting string // name of the limit in config.json
	Limit   int64  // the limit, in memories or bytes
	Have    int64  // memories or bytes that the store or session had at the moment of the refusal
	Add     int64  // memories or bytes that the write would have added
}

// Error returns the message, in one line.
func (e *LimitError) Error() string {
	who := "the store"
	if e.Session != "" {
		who = "session " + human.Quote(e.Session)
	}
	return fmt.Sprintf("%v: %s has %d of at most %d %s (%s), and the write would add %d: %s", ErrLimit, who, e.Have,
		e.Limit, e.What, e.Setting, e.Add, e.Remedy())
}

// Remedy returns the end of the message: what the user can do.
func (e *LimitError) Remedy() string {
	return fmt.Sprintf("delete memories, or raise the limit: memctl config set %s N", e.Setting)
}

// Unwrap makes the error match ErrLimit.
func (e *LimitError) Unwrap() error { return ErrLimit }

// InflatedError reports documents in the log that are compressed more than 64-fold, and whose files would be larger
// than the flusher writes without Options.Inflate. Older versions compressed repetitive texts in this way, and a
// forged log can have such documents. The documents can be read. InflatedError matches ErrLimit.
type InflatedError struct {
	Documents int
	Packed    int64 // bytes that they take in the log
	Size      int64 // bytes that their files would take
	Most      int64 // bytes of such files that are written without Options.Inflate
}

// Error returns the message, in one line.
func (e *InflatedError) Error() string {
	return fmt.Sprintf("%v: %s of the log (wal/) would become files of %d bytes with %s, more than 64 times as much (at "+
		"most %d bytes of such files are written without confirmation)",
		ErrLimit, human.Count(int(e.Packed), "byte", "bytes"), e.Size, human.Count(e.Documents, "document", "documents"),
		e.Most)
}

// Unwrap makes the error match ErrLimit.
func (e *InflatedError) Unwrap() error { return ErrLimit }

// UnfiledError names documents that existed only in the log and could not be written to files before the store was
// closed. The files of this log were removed while the store was open, so the documents are lost when the process that
// closed the store ends. UnfiledError matches what Err matches.
type UnfiledError struct {
	Path      string   // folder of the store
	Documents []string // the first UnfiledNamed documents: the kind and the id, or the version if the id is not known
	Count     int      // number of all these documents
	Err       error    // the reason why they could not be written
}

// UnfiledNamed is the maximum length of UnfiledError.Documents.
const UnfiledNamed = 1000

// Error returns the message, in one line. It names the first ten documents.
func (e *UnfiledError) Error() string {
	named := e.Documents[:min(10, len(e.Documents))]
	more := ""
	if n := e.Count - len(named); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("%s: the log was removed, and %s that only the log had could not be written to files: %s%s: %v",
		e.Path, human.Count(e.Count, "document", "documents"), strings.Join(named, ", "), more, e.Err)
}

// Unwrap returns the cause.
func (e *UnfiledError) Unwrap() error { return e.Err }

// BatchError reports which operation of a batch was refused. It matches what Err matches.
type BatchError struct {
	Index int    // index of the operation, from 0
	Key   string // id of its document
	Err   error  // the reason for the refusal
}

// Error returns the message, in one line.
func (e *BatchError) Error() string {
	return fmt.Sprintf("operation %d (%s): %v", e.Index, human.Quote(e.Key), e.Err)
}

// Unwrap returns the cause.
func (e *BatchError) Unwrap() error { return e.Err }

// TruncatedError reports how far back the log still reaches. It matches ErrTruncated.
type TruncatedError struct {
	Oldest uint64 // the oldest position that can still be read
}

// Error returns the message, in one line.
func (e *TruncatedError) Error() string {
	return fmt.Sprintf("%v: the requested position is before the oldest one that is kept, %d", ErrTruncated, e.Oldest)
}

// Unwrap makes the error match ErrTruncated.
func (e *TruncatedError) Unwrap() error { return ErrTruncated }

// GapError reports a part of the history that is lost: the log was damaged there, and the repair has kept the undamaged
// parts around it. It matches ErrTruncated.
type GapError struct {
	From, To uint64 // positions in the log; versions in between are lost
}

// Error returns the message, in one line.
func (e *GapError) Error() string {
	return fmt.Sprintf("%v: the versions from %d to %d were lost when the log was damaged", ErrTruncated, e.From, e.To)
}

// Unwrap makes the error match ErrTruncated.
func (e *GapError) Unwrap() error { return ErrTruncated }

// HistoryGoneError reports where the log of a store begins after the previous log was lost: the folder wal/ was
// deleted, or the store is a copy without this folder. It matches ErrHistoryGone and ErrTruncated.
type HistoryGoneError struct {
	Begin uint64 // everything before this position is gone
}

// Error returns the message, in one line.
func (e *HistoryGoneError) Error() string {
	return fmt.Sprintf("%v: the folder wal/ was deleted or not copied, and a new log begins at position %d; versions "+
		"before it are in no log and no archive", ErrHistoryGone, e.Begin)
}

// Unwrap makes the error match ErrHistoryGone and ErrTruncated.
func (e *HistoryGoneError) Unwrap() []error { return []error{ErrHistoryGone, ErrTruncated} }

// CopyBehindError reports that a part of the log was removed before it was sent to a copy of the store elsewhere: more
// than unsent_bytes had to be kept for the copy, or the disk was full. It matches ErrCopyBehind.
type CopyBehindError struct {
	Sent   uint64 // position up to which the copy has the log
	Oldest uint64 // position from which on the log is kept
}

// Error returns the message, in one line.
func (e *CopyBehindError) Error() string {
	return fmt.Sprintf("%v: the copy has the log up to position %d, but the log is kept only from position %d on → "+
		"begin with a full copy, or raise unsent_bytes", ErrCopyBehind, e.Sent, e.Oldest)
}

// Unwrap makes the error match ErrCopyBehind.
func (e *CopyBehindError) Unwrap() error { return ErrCopyBehind }

// MovedError reports the folder to which a store was moved. It matches ErrMoved.
type MovedError struct {
	From, To string    // the old folder, and the new one
	Store    string    // UUID of the store, which does not change
	When     time.Time // time of the switch
}

// Error returns the message, in one line.
func (e *MovedError) Error() string {
	return fmt.Sprintf("%v from %s to %s at %s", ErrMoved, e.From, e.To, e.When.UTC().Format(time.RFC3339))
}

// Unwrap makes the error match ErrMoved.
func (e *MovedError) Unwrap() error { return ErrMoved }

func appendErr(list []error, err error) []error {
	if err != nil {
		list = append(list, err)
	}
	return list
}

// LinkedError reports that the files of the folder Path are hard links to the files of another store, as after cp -al.
// The log belongs to the other store. The store in Path can be read, but not written. LinkedError matches ErrReadOnly.
type LinkedError struct {
	Path  string // the folder
	File  string // a file of the log that has a second name, relative to the folder
	Links uint64 // number of names of the file
}

// Error returns the message, in one line.
func (e *LinkedError) Error() string {
	return fmt.Sprintf("%v: %s consists of hard links (%s has %d names), as cp -al makes them, and its log belongs "+
		"to the folder from which the links were made: to write, make a copy with its own files and use the copy: cp "+
		"-a %s NEW-FOLDER",
		ErrReadOnly, e.Path, e.File, e.Links, e.Path)
}

// Unwrap makes the error match ErrReadOnly.
func (e *LinkedError) Unwrap() error { return ErrReadOnly }

// NewerError reports which file was written by a newer version. It matches ErrNewerFormat.
type NewerError struct {
	Path   string // the file, "" when unknown
	Format uint64 // the format of the file
	Reads  uint64 // the newest format that this program reads
}

// Error returns the message, in one line.
func (e *NewerError) Error() string {
	where := ""
	if e.Path != "" {
		where = e.Path + ": "
	}
	return fmt.Sprintf("%sthe format is %d, but this program reads only formats up to %d: %v", where, e.Format,
		e.Reads, ErrNewerFormat)
}

// Unwrap makes the error match ErrNewerFormat.
func (e *NewerError) Unwrap() error { return ErrNewerFormat }

// FeatureError reports that a store has features that this program does not know. It matches
// ErrNewerFormat.
type FeatureError struct {
	Path     string   // folder of the store
	Lacks    []string // names of the features that this program does not know
	Readable bool     // the store can be opened read-only
}

// Error returns the message, in one line.
func (e *FeatureError) Error() string {
	s := fmt.Sprintf("%s has features that this program does not know (%s): %v", e.Path, strings.Join(e.Lacks, ", "),
		ErrNewerFormat)
	if e.Readable {
		s += "; reading works: this program can open the store read-only"
	}
	return s
}

// Unwrap makes the error match ErrNewerFormat.
func (e *FeatureError) Unwrap() error { return ErrNewerFormat }
