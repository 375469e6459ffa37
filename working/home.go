package working

import (
	"context"
	"iter"
	"time"
)

// Home keeps the working memory of any number of scopes. It performs operations, each completely or not at all, in one
// order for all users of the home. JSON, reserved keys and defaults are the task of Memory, not of a Home. See the
// package comment for the reason why operations are data.
//
// The caller owns the memory of a Result, the home that of an Op: the other side must not write to it.
type Home interface {
	// Do carries out one operation. An error that does not match
	// ErrOutcomeUnknown means that nothing was done.
	Do(ctx context.Context, r *Request) (Result, error)
	// Scopes lists the scopes that exist, in no particular order.
	Scopes(ctx context.Context) iter.Seq2[Scope, error]
	// Release frees the memory that the process uses for a scope. The in-process home deletes the
	// scope; every other home loses nothing.
	Release(ctx context.Context, s Scope) error
	// Name returns "memory", "store" or "redis".
	Name() string
	// Check returns nil if the home can be reached.
	Check(ctx context.Context) error
	Close() error
}

// Fallback is implemented by a Home that may be replaced by a substitute when it cannot be reached.
type Fallback interface {
	// UsingFallback reports whether operations use the substitute at the moment.
	UsingFallback() bool
}

// Request is an operation on a scope.
type Request struct {
	Scope  Scope
	Limits Limits // limits of the scope, enforced by operations that add data
	Op     Op
}

// Limits are the limits of a scope; they count the user's keys only. 0 means no limit.
type Limits struct {
	Keys  int
	Bytes int64 // maximum number of bytes of keys and values together
	Evict bool  // evict the least recently used values at a limit; otherwise the error is a LimitError
}

// Special lifetimes of a value, which are otherwise in milliseconds. 0 expires at once: nothing is
// stored, and an existing value is removed.
const (
	Forever = -1 // the value does not expire
	KeepTTL = -2 // keep the remaining lifetime; the lifetime is IfNew if there is no value
)

// Condition is a condition for writing a PutItem.
type Condition uint8

// The conditions.
const (
	Always    Condition = iota
	IfAbsent            // there is no item
	IfVersion           // the item has the version PutItem.Version
)

// Op is an operation: one of the types below.
type Op interface{ op() }

// The operations. Names are item names, see ValueName.
type (
	// OpAttach creates the scope if it does not exist. Result: Created.
	OpAttach struct{}
	// OpGet reads items. Result: Items, as many as Names, in their order.
	OpGet struct {
		Names []string
		Peek  bool // do not count the read as a use of the items
	}
	// OpPut writes items, all or none. Result: Items, without values. If a condition does not hold,
	// the error is a ConflictError.
	OpPut struct{ Items []PutItem }
	// PutItem is one item of an OpPut.
	PutItem struct {
		Name    string
		Value   []byte
		TTL     int64 // milliseconds, or Forever, or KeepTTL
		IfNew   int64 // lifetime that replaces KeepTTL if the item does not exist
		Cond    Condition
		Version uint64
	}
	// OpDelete removes items. Result: Items; Found reports whether the item existed.
	OpDelete struct{ Names []string }
	// OpIncrement adds to an integer; a missing value counts as 0. Result: N, the sum.
	OpIncrement struct {
		Name  string
		By    int64
		TTL   int64
		IfNew int64
	}
	// OpExpire sets the lifetime of an item. Result: N, 1 if the item exists.
	OpExpire struct {
		Name string
		TTL  int64
	}
	// OpList reads all values of the user, sorted by name. Result: Items. It does not count as use.
	OpList struct{ Values bool }
	// OpClear removes all values of the user. Result: N, their number.
	OpClear struct{}
	// OpAppend adds an entry to the scratchpad and removes the oldest entries beyond Keep (0:
	// none). Result: Notes, the new entry; N, the number of removed entries.
	OpAppend struct {
		Text string
		Keep int
	}
	// OpNotes reads the last entries of the scratchpad, oldest first; Last < 0: all.
	// Result: Notes.
	OpNotes struct{ Last int }
	// OpClearNotes empties the scratchpad. Result: N, the number of removed entries.
	OpClearNotes struct{}
	// OpCheckpoint saves the current state and removes the oldest checkpoints beyond Keep (0:
	// none). Result: Checkpoints, the new one.
	OpCheckpoint struct {
		ID, Description string
		Keep            int
	}
	// OpCheckpoints lists the checkpoints, oldest first. Result: Checkpoints.
	OpCheckpoints struct{}
	// OpLoad reads a checkpoint, or the current state if ID is empty. Result: Items and Notes; for
	// a checkpoint also Checkpoints.
	OpLoad struct{ ID string }
	// OpRestore saves the current state as the checkpoint Undo, and makes the state of checkpoint
	// ID the current state. Neither of the two checkpoints is removed because of Keep. Result:
	// Checkpoints, with Undo.
	OpRestore struct {
		ID, Undo, Description string
		Keep                  int
	}
	// OpDiscard removes a checkpoint. Result: N, 1 if it existed.
	OpDiscard struct{ ID string }
	// OpCount counts the keys, entries and checkpoints of the scope. Result: Counts.
	OpCount struct{}
	// OpDrop removes the scope with everything in it. Result: N, 1 if it existed.
	OpDrop struct{}
)

func (OpAttach) op()      {}
func (OpGet) op()         {}
func (OpPut) op()         {}
func (OpDelete) op()      {}
func (OpIncrement) op()   {}
func (OpExpire) op()      {}
func (OpList) op()        {}
func (OpClear) op()       {}
func (OpAppend) op()      {}
func (OpNotes) op()       {}
func (OpClearNotes) op()  {}
func (OpCheckpoint) op()  {}
func (OpCheckpoints) op() {}
func (OpLoad) op()        {}
func (OpRestore) op()     {}
func (OpDiscard) op()     {}
func (OpCount) op()       {}
func (OpDrop) op()        {}

// Writes reports whether an operation may change a scope.
func Writes(op Op) bool {
	switch op.(type) {
	case OpGet, OpList, OpNotes, OpCheckpoints, OpLoad, OpCount:
		return false
	}
	return true
}

// Result is the result of an operation; see the operation for the fields that are set.
type Result struct {
	Items       []Item
	Notes       []Note
	Checkpoints []CheckpointInfo
	N           int64
	Created     time.Time
	Counts      Counts
}

// Item is a value of working memory, or the task state, as a home returns it.
type Item struct {
	Name    string
	Found   bool
	Value   []byte
	Version uint64    // changes with every write, and is never used again within the scope
	Updated time.Time // time of the last write by the home's clock, to the microsecond
	TTL     int64     // remaining milliseconds, or Forever
}

// Note is an entry of the scratchpad.
type Note struct {
	Seq  uint64    `json:"seq"` // increases with every entry of the scope, and is never used again
	Text string    `json:"content"`
	Time time.Time `json:"timestamp"` // time by the home's clock, which may be set back; Seq never decreases
}

// CheckpointInfo describes a checkpoint in a list.
type CheckpointInfo struct {
	ID          string    `json:"id"` // id of the checkpoint, a UUID
	Description string    `json:"description,omitempty"`
	Created     time.Time `json:"created_at"`
	Keys        int       `json:"keys"`    // number of the user's keys in the checkpoint
	Notes       int       `json:"entries"` // number of scratchpad entries in the checkpoint
	// number of items stored for the checkpoint: those that differ from the previous one
	Changed int `json:"changed"`
	// the error because of which the checkpoint cannot be read; then only ID is valid
	Err error `json:"-"`
}

// Counts are the counts of a scope at one moment.
type Counts struct {
	Keys        int   // the user's keys that have not expired
	Expired     int   // the user's keys that have expired and still use memory
	Bytes       int64 // number of bytes of the keys in Keys and their values
	Notes       int
	Checkpoints int
	Task        bool
	Created     time.Time // time of creation; zero: the scope does not exist
}
