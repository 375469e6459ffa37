package wal

import (
	"fmt"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// Types of package past that are part of the log's interface.
type (
	// Entry is one change of one key.
	Entry = past.Entry
	// Mark is a position and the chain hash there: the checksum of the last frame before it. Two logs that
	// agree in a mark agree in everything before it.
	Mark = past.Mark
	// Gap is a place in a segment where a frame is missing.
	Gap = past.Gap
	// SegmentFile is a file in wal/ that has the name of a segment.
	SegmentFile = past.SegmentFile
)

// LSN is a position in the log. Marks (durable, flushed, spilled) are
// exclusive: everything with an LSN below the mark is covered.
type LSN = segment.LSN

// Precondition holds if the newest entry of Key has this LSN; LSN 0 if the key is absent. The empty key stands for the
// log as a whole: nothing may have been committed at or after LSN.
//
// Hint helps Machine.Unchanged to determine quickly that the state has not changed since the precondition was made; 0
// for no hint.
//
// A key may also stand for a running total (Machine.Counts): then LSN is the total that the caller saw, and the
// precondition holds as long as the total has grown by at most Most since.
//
// A precondition on an absent key holds no matter when the key was deleted. An entry that names its predecessor needs
// a stricter one: with Chained, the newest entry of an absent key must be Deletion, as Machine.Deletion returns it.
type Precondition struct {
	Key      string
	LSN      LSN
	Hint     uint64
	Most     uint64
	Chained  bool
	Deletion LSN
}

// The causes of entries that no caller asked for. Entries of a log without writers have no cause.
const (
	CauseExpired uint8 = 1 // the time to live, or the age that the settings allow, was exceeded
	CauseEvicted uint8 = 2 // the document was removed to make room for another one
	CauseEdited  uint8 = 3 // a file was edited, added or removed by hand
	CauseUpkeep  uint8 = 4 // the store changed derived data: an embedding, a count of accesses
	CauseUndo    uint8 = 5 // an undo restored the document
	CauseUndoing uint8 = 6 // as CauseUndo, in a commit that is not the last one of the undo
)

// Amount is a number that an entry adds to a running total.
type Amount struct {
	Key string
	N   uint64
}

// Batch is written as a whole or not at all. Preconditions are evaluated when the batch is written, against
// everything before it in the log.
type Batch struct {
	Entries       []Entry
	Preconditions []Precondition
	// Writer is the number of the writer of all entries. If it is 0, the writer is unknown and each entry keeps
	// its own number, if any. A log keeps numbers only with FeatureFields, and causes only with FeatureWriters.
	Writer uint32
	// Frees marks a batch that frees space in the end, although it writes: like a batch of deletions, it may
	// use the reserved space.
	Frees bool
	// OnTop, of a batch of one entry, is called if the precondition on the entry's key fails because newest is now the
	// key's newest entry. It changes the entry so that it follows newest, and returns false if it cannot; then the
	// batch conflicts. Any goroutine may call it, while append.lock is held, and never after Append has returned. It
	// must be quick, keep no reference to newest, and not call the log.
	OnTop func(newest *Entry) bool
	// Written, if set, is called when the batch is in the log and the LSNs of its entries are set, but before the
	// batch is durable. With Written, a conflict is also returned at once, even if it depends on an entry that is not
	// durable. Any goroutine may call Written, never after Append has returned, and possibly none does. It must be
	// quick. The caller must report neither success nor conflict before the entries are durable: see Ahead.
	Written func()
}

// ConflictError reports which precondition failed. It matches errs.ErrConflict.
type ConflictError struct {
	Index int // index of the failed precondition
	Precondition
	Found LSN // version of the newest entry; 0 if the key is absent
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%v: expected version %d, found %d", errs.ErrConflict, e.LSN, e.Found)
}

// Unwrap makes the error match errs.ErrConflict.
func (e *ConflictError) Unwrap() error { return errs.ErrConflict }
