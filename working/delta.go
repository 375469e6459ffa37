package working

// ChangeKind is what a Change does.
type ChangeKind string

// The kinds of changes.
const (
	ChangeAttach  ChangeKind = "attach"  // the scope exists
	ChangePut     ChangeKind = "put"     // Name, Value, Deadline
	ChangeDelete  ChangeKind = "del"     // Name
	ChangeAppend  ChangeKind = "append"  // Text, Keep
	ChangeEmpty   ChangeKind = "empty"   // the scratchpad has no entries
	ChangeMark    ChangeKind = "mark"    // ID, Text: the present is a checkpoint
	ChangeDiscard ChangeKind = "discard" // ID: no longer a checkpoint
	ChangeRestore ChangeKind = "restore" // ID: the present is what the checkpoint has
	ChangeDrop    ChangeKind = "drop"    // the scope does not exist
)

// Change is one step of a Delta, as plain data.
type Change struct {
	Kind     ChangeKind `json:"do"`
	Name     string     `json:"name,omitempty"`
	Value    []byte     `json:"value,omitempty"`
	Deadline int64      `json:"deadline,omitempty"` // tick at which it is over; 0: never
	ID       string     `json:"id,omitempty"`
	Text     string     `json:"text,omitempty"`
	Keep     int        `json:"keep,omitempty"`
}

// Delta is what an operation changes: outcomes, not conditions. Values stand in
// it, a checkpoint and its restoring only by their ids, so it is as large as
// what the operation brought.
type Delta struct {
	Changes []Change
	// Blind: right after whatever comes before it, so that a home need not make
	// sure that nothing came between Judge and Play.
	Blind bool
}

// Empty tells whether nothing changes.
func (d *Delta) Empty() bool { return len(d.Changes) == 0 }

func (d *Delta) add(c Change) { d.Changes = append(d.Changes, c) }
