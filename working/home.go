package working

import (
	"context"
	"iter"
	"time"
)

// Home keeps the working memory of any number of scopes. It does not handle JSON, reserved keys or
// defaults: Memory does. It does one thing: it performs an operation, completely or not at all, in
// one order for all who share the home. See the package comment for why operations are data.
//
// The caller owns what a Result holds, the home what an Op holds: neither may be written to by the
// other side.
type Home interface {
	// Do carries out one operation. An error that does not match
	// ErrOutcomeUnknown means that nothing was done.
	Do(ctx context.Context, r *Request) (Result, error)
	// Scopes lists the scopes that hold anything, in no order.
	Scopes(ctx context.Context) iter.Seq2[Scope, error]
	// Release frees what the process holds of a scope. A home that lives in the
	// process loses the scope, any other one loses nothing.
	Release(ctx context.Context, s Scope) error
	// Name is "memory", "store" or "redis".
	Name() string
	// Check returns nil when the home answers.
	Check(ctx context.Context) error
	Close() error
}

// Fallback is implemented by a Home that may be replaced by a substitute when it cannot be reached.
type Fallback interface {
	// UsingFallback reports whether operations go elsewhere at the moment.
	UsingFallback() bool
}

// Request is an operation on a scope.
type Request struct {
	Scope  Scope
	Limits Limits // of the scope, judged by what adds to it
	Op     Op
}

// Limits of a scope; they count the user's keys only. 0 is no limit.
type Limits struct {
	Keys  int
	Bytes int64 // of keys and values
	Evict bool  // the least recently used give way; else LimitError
}

// Lifetimes of a value in milliseconds; 0 expires at once: nothing is stored, and an existing value
// is removed.
const (
	Forever = -1 // it does not expire
	KeepTTL = -2 // what remains of what is there; IfNew where nothing is
)

// Condition says what must be there for a PutItem.
type Condition uint8

// The conditions.
const (
	Always    Condition = iota
	IfAbsent            // nothing
	IfVersion           // the version that PutItem.Version names
)

// Op is an operation: one of the types below.
type Op interface{ op() }

// The operations. Names are item names, see ValueName.
type (
	// OpAttach makes the scope, if it is new. Result: Created.
	OpAttach struct{}
	// OpGet reads items. Result: Items, as many as Names, in their order.
	OpGet struct {
		Names []string
		Peek  bool // does not count as use
	}
	// OpPut writes items, all or none. Result: Items, without values. When a
	// condition does not hold: ConflictError.
	OpPut struct{ Items []PutItem }
	// PutItem is one item of an OpPut.
	PutItem struct {
		Name    string
		Value   []byte
		TTL     int64 // milliseconds, or Forever, or KeepTTL
		IfNew   int64 // in place of KeepTTL where nothing is
		Cond    Condition
		Version uint64
	}
	// OpDelete removes items. Result: Items; Found says whether it was there.
	OpDelete struct{ Names []string }
	// OpIncrement adds to an integer; a missing value counts as 0. Result: N, the sum.
	OpIncrement struct {
		Name  string
		By    int64
		TTL   int64
		IfNew int64
	}
	// OpExpire gives an item another lifetime. Result: N, 1 if it was there.
	OpExpire struct {
		Name string
		TTL  int64
	}
	// OpList reads all values of the user, sorted by name. Result: Items; does not
	// count as use.
	OpList struct{ Values bool }
	// OpClear removes all values of the user. Result: N, how many.
	OpClear struct{}
	// OpAppend adds to the scratchpad and drops the oldest beyond Keep (0: none).
	// Result: Notes, the new one; N, how many were dropped.
	OpAppend struct {
		Text string
		Keep int
	}
	// OpNotes reads the last entries of the scratchpad, oldest first; Last < 0: all.
	// Result: Notes.
	OpNotes struct{ Last int }
	// OpClearNotes empties the scratchpad. Result: N, how many.
	OpClearNotes struct{}
	// OpCheckpoint keeps the present state and drops the oldest checkpoints beyond
	// Keep (0: none). Result: Checkpoints, the new one.
	OpCheckpoint struct {
		ID, Description string
		Keep            int
	}
	// OpCheckpoints lists them, oldest first. Result: Checkpoints.
	OpCheckpoints struct{}
	// OpLoad reads a checkpoint, or the present state where ID is empty. Result:
	// Items and Notes; Checkpoints, the one, except for the present.
	OpLoad struct{ ID string }
	// OpRestore makes the present state a checkpoint of its own, Undo, and a
	// checkpoint the present state. Neither of the two is dropped for Keep.
	// Result: Checkpoints, that of Undo.
	OpRestore struct {
		ID, Undo, Description string
		Keep                  int
	}
	// OpDiscard removes a checkpoint. Result: N, 1 if it was there.
	OpDiscard struct{ ID string }
	// OpCount counts. Result: Counts.
	OpCount struct{}
	// OpDrop removes the scope with all that it has. Result: N, 1 if it was there.
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

// Writes reports whether an operation may change anything.
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

// Item is one item as a home returns it.
type Item struct {
	Name    string
	Found   bool
	Value   []byte
	Version uint64    // another one with every write, never used again within the scope
	Updated time.Time // by the home's clock, to the microsecond
	TTL     int64     // milliseconds that remain, or Forever
}

// Note is an entry of the scratchpad.
type Note struct {
	Seq  uint64    `json:"seq"` // grows with every entry of the scope, never used again
	Text string    `json:"content"`
	Time time.Time `json:"timestamp"` // by the home's clock; it may run backwards, Seq does not
}

// CheckpointInfo describes a checkpoint in a list.
type CheckpointInfo struct {
	ID          string    `json:"id"` // a UUID
	Description string    `json:"description,omitempty"`
	Created     time.Time `json:"created_at"`
	Keys        int       `json:"keys"`    // the user's keys that it holds
	Notes       int       `json:"entries"` // of the scratchpad
	Changed     int       `json:"changed"` // items kept for its sake: what differed from the one before
	Err         error     `json:"-"`       // what is wrong with it; only ID is sure then
}

// Counts are taken at one moment.
type Counts struct {
	Keys        int   // the user's, not expired
	Expired     int   // the user's that expired and still take room
	Bytes       int64 // keys and values that Keys counts
	Notes       int
	Checkpoints int
	Task        bool
	Created     time.Time // zero: the scope does not exist
}
