package wal

import (
	"fmt"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// The types of package past that belong to the log itself.
type (
	// Entry is one change of one key.
	Entry = past.Entry
	// Mark is a position and the chain hash there: the checksum of the last frame before it. Two logs that
	// agree in a mark agree in everything before it.
	Mark = past.Mark
	// Gap is a place in a segment where a frame is missing.
	Gap = past.Gap
	// SegmentFile is a file in wal/ with a segment's name.
	SegmentFile = past.SegmentFile
)

// LSN is a position in the log. Marks (durable, flushed, spilled) are
// exclusive: everything with an LSN below the mark is covered.
type LSN = segment.LSN

// Precondition holds when the newest entry of Key has this LSN; LSN 0 when the
// key is absent. The empty key stands for the log as a whole: nothing may have
// been committed at or behind LSN.
//
// Hint helps Machine.Unchanged to determine quickly that the state has not changed since the
// precondition was made; 0 for no hint.
//
// A key may also stand for a running total (Machine.Counts): then LSN is the total that
// was seen, and the precondition holds as long as it grew by at most Most since.
//
// For an absent key it does not matter since when. An entry that names its predecessor needs more:
// Chained requires of an absent key also that its newest entry is Deletion, as Machine.Deletion
// returns it.
type Precondition struct {
	Key      string
	LSN      LSN
	Hint     uint64
	Most     uint64
	Chained  bool
	Deletion LSN
}

// The causes of entries that no caller asked for. An entry of a log that keeps no writers has none.
const (
	CauseExpired uint8 = 1 // its time to live, or the age that the settings allow, was over
	CauseEvicted uint8 = 2 // it made room for another document
	CauseEdited  uint8 = 3 // a file was edited, added or removed by hand
	CauseUpkeep  uint8 = 4 // the store changed what it derives: an embedding, a count of accesses
	CauseUndo    uint8 = 5 // an undo put the document back as it was
	CauseUndoing uint8 = 6 // likewise, in a commit that is not the last one of the undo
)

// Amount is what an entry adds to a running total.
type Amount struct {
	Key string
	N   uint64
}

// Batch is written as a whole or not at all. Preconditions are judged at the
// moment of writing, after everything that comes before it in the log.
type Batch struct {
	Entries       []Entry
	Preconditions []Precondition
	// Writer is the number of the writer of all entries, 0 where it is not known: then an entry has the
	// number that it brings along, if any. A log keeps numbers only with FeatureFields, and causes with
	// FeatureWriters.
	Writer uint32
	// Frees reports whether the batch frees space in the end, although it writes: like a batch of
	// deletions, it may use the last of the space.
	Frees bool
	// OnTop, of a batch of one entry, is called when the precondition on the entry's key does not
	// hold because newest is the key's newest entry: it prepares the entry again on top of that, and
	// returns false if it cannot; then the batch conflicts. It is called while append.lock is held,
	// by any goroutine, and never after Append has returned. It must be quick, keep nothing of
	// newest, and call nothing of the log.
	OnTop func(newest *Entry) bool
	// Written, if there is one, is called when the batch is in the log, and the LSNs of its entries
	// are set, but it is not durable yet; and a conflict is answered at once, although it may rest on
	// what is not durable. It is called by any goroutine, never after Append has returned, and not
	// for certain. It must be quick. The caller tells nothing of either before it is durable: see Ahead.
	Written func()
}

// ConflictError says which precondition did not hold. It matches errs.ErrConflict.
type ConflictError struct {
	Index int // of the precondition
	Precondition
	Found LSN // the newest entry; 0 if the key was absent
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%v: expected version %d, found %d", errs.ErrConflict, e.LSN, e.Found)
}

// Unwrap makes the error match errs.ErrConflict.
func (e *ConflictError) Unwrap() error { return errs.ErrConflict }
