package working

import (
	"context"
	"iter"
	"time"
)

// Home stores the working memory of any number of scopes. It performs each operation completely or not at all, and in
// the same order for all users of the home. A Home does not know JSON, reserved keys and defaults: a Memory handles
// them. The package comment explains why operations are data.
//
// The caller owns the memory of a Result, and the home owns the memory of an Op. Neither may write to the memory of
// the other.
type Home interface {
	// Do performs one operation. If it returns an error that does not match ErrOutcomeUnknown, nothing was changed.
	Do(ctx context.Context, r *Request) (Result, error)
	// Scopes lists the scopes that exist, in no particular order.
	Scopes(ctx context.Context) iter.Seq2[Scope, error]
	// Release frees the memory that the process uses for a scope. The in-process home thereby deletes the scope; other
	// homes keep all data.
	Release(ctx context.Context, s Scope) error
	// Name returns "memory", "store" or "redis".
	Name() string
	// Check returns nil if the home can be reached.
	Check(ctx context.Context) error
	Close() error
}

// Fallback is implemented by a Home that uses a substitute when it cannot be reached.
type Fallback interface {
	// UsingFallback reports whether the Home now uses the substitute.
	UsingFallback() bool
}

// Request is an operation on a scope.
type Request struct {
	Scope  Scope
	Limits Limits // limits of the scope; operations that add data enforce them
	Op     Op
}

// Limits are the limits of a scope. Only the user's keys and values count. 0 means no limit.
type Limits struct {
	Keys  int
	Bytes int64 // maximum number of bytes of keys and values together
	Evict bool  // at a limit, delete the least recently used values; otherwise the error is a *LimitError
}

// Special values of a lifetime in milliseconds. A lifetime of 0 expires at once: nothing is stored, and an existing
// value is removed.
const (
	Forever = -1 // the value does not expire
	KeepTTL = -2 // the value keeps its remaining lifetime; a new value gets the lifetime IfNew
)

// Condition is the condition under which a PutItem is written.
type Condition uint8

// The conditions.
const (
	Always    Condition = iota
	IfAbsent            // there is no item
	IfVersion           // the item has the version PutItem.Version
)

// Op is an operation on a scope: one of the types below whose names begin with Op.
type Op interface{ op() }

// The operations. Each comment ends with the fields of Result that the operation sets. Name and Names are names of
// items; see ValueName.
type (
	// OpAttach creates the scope if it does not exist. Result: Created.
	OpAttach struct{}
	// OpGet reads items. Result: Items, one for each of Names, in the same order.
	OpGet struct {
		Names []string
		Peek  bool // do not count the read as a use of the items
	}
	// OpPut writes all items or none. If the condition of an item is not met, the error is a *ConflictError. Result:
	// Items, without values.
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
	// OpDelete removes items. Result: Items, whose Found reports whether the item existed.
	OpDelete struct{ Names []string }
	// OpIncrement adds By to an integer. A missing value counts as 0. Result: N, the sum.
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
	// OpList lists all values of the user, sorted by name, and reads their contents if Values is true. It does not
	// count as a use of the items. Result: Items.
	OpList struct{ Values bool }
	// OpClear removes all values of the user. Result: N, their number.
	OpClear struct{}
	// OpAppend adds an entry to the scratchpad. If there are then more than Keep entries, it removes the oldest ones;
	// if Keep is 0, it removes none. Result: Notes, the new entry; N, the number of removed entries.
	OpAppend struct {
		Text string
		Keep int
	}
	// OpNotes reads the last entries of the scratchpad, the oldest first: at most Last entries, or all if Last is
	// negative. Result: Notes.
	OpNotes struct{ Last int }
	// OpClearNotes empties the scratchpad. Result: N, the number of removed entries.
	OpClearNotes struct{}
	// OpCheckpoint saves the current state as a checkpoint. If there are then more than Keep checkpoints, it removes
	// the oldest ones; if Keep is 0, it removes none. Result: Checkpoints, the new one.
	OpCheckpoint struct {
		ID, Description string
		Keep            int
	}
	// OpCheckpoints lists the checkpoints, oldest first. Result: Checkpoints.
	OpCheckpoints struct{}
	// OpLoad reads the content of a checkpoint, or the current state if ID is empty. Result: Items and Notes, and for a
	// checkpoint also Checkpoints.
	OpLoad struct{ ID string }
	// OpRestore saves the current state as a new checkpoint with the id Undo, and then makes the state of the
	// checkpoint ID the current state. Keep is as in OpCheckpoint, but neither of these two checkpoints is removed.
	// Result: Checkpoints, the new one.
	OpRestore struct {
		ID, Undo, Description string
		Keep                  int
	}
	// OpDiscard removes a checkpoint. Result: N, 1 if the checkpoint existed.
	OpDiscard struct{ ID string }
	// OpCount counts the keys, the scratchpad entries and the checkpoints of the scope. Result: Counts.
	OpCount struct{}
	// OpDrop removes the scope with all its data. Result: N, 1 if the scope existed.
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

// Result is the result of an operation. The comment of the operation tells which fields are set.
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
	Version uint64    // number of the last write; a scope never uses a number twice
	Updated time.Time // time of the last write by the home's clock, to the microsecond
	TTL     int64     // remaining milliseconds, or Forever
}

// Note is an entry of the scratchpad.
type Note struct {
	Seq  uint64    `json:"seq"` // higher for each new entry; a scope never uses a number twice
	Text string    `json:"content"`
	Time time.Time `json:"timestamp"` // time by the home's clock; may be lower than in an earlier entry
}

// CheckpointInfo describes a checkpoint in a list.
type CheckpointInfo struct {
	ID          string    `json:"id"` // id of the checkpoint, a UUID
	Description string    `json:"description,omitempty"`
	Created     time.Time `json:"created_at"`
	Keys        int       `json:"keys"`    // number of the user's keys in the checkpoint
	Notes       int       `json:"entries"` // number of scratchpad entries in the checkpoint
	// number of items that are stored for the checkpoint: those that differ from the previous checkpoint
	Changed int `json:"changed"`
	// the error because of which the checkpoint cannot be read; then only ID is valid
	Err error `json:"-"`
}

// Counts has the numbers of items in a scope at one moment.
type Counts struct {
	Keys        int   // the user's keys that have not expired
	Expired     int   // the user's keys that have expired and still use memory
	Bytes       int64 // number of bytes of the keys in Keys and their values
	Notes       int
	Checkpoints int
	Task        bool
	Created     time.Time // time of creation; zero: the scope does not exist
}
