package wal

import (
	"fmt"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// Types of package past that are part of the interface of FileLog.
type (
	// Entry is one change of one key: one record in the log.
	Entry = past.Entry
	// Mark is a position in the log with the chain hash at that position: the checksum of the last frame before
	// it. Two logs that have the same mark are equal before it.
	Mark = past.Mark
	// Gap is a place in a segment where a frame is missing.
	Gap = past.Gap
	// SegmentFile is a file in wal/ that has the name of a segment.
	SegmentFile = past.SegmentFile
)

// LSN is a position in the log. The positions that the log publishes (durable, flushed, spilled) are
// exclusive: they cover every entry whose LSN is lower.
type LSN = segment.LSN

// Precondition is a condition under which a batch is written. It is met if the newest entry of Key has the position
// LSN. If LSN is 0, it is met if the key is absent. If Key is empty, it is met if the log has no entry at or after LSN.
//
// Hint helps Machine.Unchanged to determine quickly that the state has not changed since the Precondition was made. 0
// means that there is no hint.
//
// Key may also name a running total (see Machine.Counts). Then LSN is the total that the caller has seen, and the
// Precondition is met if the total has since grown by at most Most.
//
// A Precondition on an absent key is normally met no matter when the key was deleted. If Chained is set, the deletion
// of the key must also be the one at the position Deletion, which Machine.Deletion returned. An entry that names its
// predecessor needs this.
type Precondition struct {
	Key      string
	LSN      LSN
	Hint     uint64
	Most     uint64
	Chained  bool
	Deletion LSN
}

// The causes of entries that are not ordinary writes of a caller. In a log without FeatureWriters, entries have no
// cause.
const (
	CauseExpired uint8 = 1 // the time to live, or the age that the settings allow, was exceeded
	CauseEvicted uint8 = 2 // the document was removed to make room for another one
	CauseEdited  uint8 = 3 // a file was edited, added or removed by hand
	CauseUpkeep  uint8 = 4 // the store changed derived data: an embedding, a count of accesses
	CauseUndo    uint8 = 5 // an undo restored the document
	CauseUndoing uint8 = 6 // an undo restored the document, in a commit that is not the last one of the undo
)

// Amount is the number that an entry adds to a running total.
type Amount struct {
	Key string
	N   uint64
}

// Batch is a list of entries of which either all or none are written. Its Preconditions are evaluated when it is
// written, against all entries before it in the log.
type Batch struct {
	Entries       []Entry
	Preconditions []Precondition
	// Writer is the number of the writer of all entries of the batch. 0 means that the writer is unknown; each
	// entry then keeps the number that it has, if any. A log stores these numbers only with FeatureFields, and
	// causes of entries only with FeatureWriters.
	Writer uint32
	// Frees marks a batch that writes, but in the end frees space. Like a batch of deletions, it may use the
	// space that the log reserves for a full disk.
	Frees bool
	// OnTop, of a batch of one entry, is called if the precondition on the entry's key fails because newest is
	// now the key's newest entry. It changes the batch's entry so that it follows newest, and returns false if
	// it cannot; then the batch conflicts. It is called while append.lock is held, by any goroutine, and never
	// after Append has returned. It must be quick, keep no reference to newest, and not call the log.
	OnTop func(newest *Entry) bool
	// Written, if set, is called when the batch is in the log and the LSNs of its entries are set, but before
	// the batch is durable. With Written, a conflict is also returned at once, even if it rests on an entry
	// that is not durable. Any goroutine may call Written, never after Append has returned, and it may not be
	// called at all. It must be quick. The caller must not report the batch or the conflict before it is
	// durable: see Ahead.
	Written func()
}

// ConflictError means that a precondition of a batch was not met. The error matches errs.ErrConflict.
type ConflictError struct {
	Index int // index of the failed precondition in the batch
	Precondition
	Found LSN // position of the newest entry of the key, or its running total; 0 if the key is absent
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%v: expected version %d, found %d", errs.ErrConflict, e.LSN, e.Found)
}

// Unwrap makes the error match errs.ErrConflict.
func (e *ConflictError) Unwrap() error { return errs.ErrConflict }
