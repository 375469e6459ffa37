package wal

import (
	"fmt"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/segment"
)

// LSN is a position in the log. Marks (durable, flushed, spilled) are
// exclusive: everything with an LSN below the mark is covered.
type LSN = segment.LSN

// Entry is one change of one key.
type Entry struct {
	LSN      LSN       // where it stands; set by Append and by reading
	Time     time.Time // of the commit, whole microseconds, different for every entry; set likewise
	Reading  time.Time // of the clock at the commit: Time, or what the clock said that was behind it; set likewise
	Key      string    // whose change it is
	Kind     uint8     // the kind of the value, 16…255; the log does not interpret the value
	Delete   bool      // the key is absent after this
	More     bool      // the batch continues; set by reading
	Own      bool      // this handle wrote the entry, and did not read it; set when it is applied
	Size     uint64    // bytes of log that the entry takes, from LSN on; set by reading
	Inflated uint32    // bytes of Value after decompression; 0 means len(Value)
	Value    []byte
}

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
	// Frees says that the batch frees space in the end, although it writes: like a batch of
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
