package working

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
)

// ChangeKind is the kind of a Change.
type ChangeKind string

// The kinds of changes.
const (
	ChangeAttach  ChangeKind = "attach"  // the scope is created
	ChangePut     ChangeKind = "put"     // an item is written; uses Name, Value, Deadline
	ChangeDelete  ChangeKind = "del"     // an item is deleted; uses Name
	ChangeAppend  ChangeKind = "append"  // an entry is added to the scratchpad; uses Text, Keep
	ChangeEmpty   ChangeKind = "empty"   // the scratchpad is emptied
	ChangeMark    ChangeKind = "mark"    // the current state becomes a checkpoint; uses ID, Text
	ChangeDiscard ChangeKind = "discard" // a checkpoint is deleted; uses ID
	ChangeRestore ChangeKind = "restore" // the state of a checkpoint becomes the current state; uses ID
	ChangeDrop    ChangeKind = "drop"    // the scope is removed
)

// Change is one of the changes in a Delta. Kind determines which of the other fields are used.
type Change struct {
	Kind     ChangeKind
	Name     string
	Value    []byte
	Deadline int64 // tick at which the value expires; 0: never
	ID       string
	Text     string
	Keep     int
}

// Delta has the changes that an operation makes. It has the results of the operation, not its conditions. It contains
// the changed values. Of a new checkpoint it contains the id and the description but not the content, so a Delta is
// about as large as the data of the operation.
type Delta struct {
	Changes []Change
	// Blind means that the changes are correct whatever the state of the scope is. So the home may make other changes
	// between Judge and Play.
	Blind bool
}

// Empty reports whether the Delta has no changes.
func (d *Delta) Empty() bool { return len(d.Changes) == 0 }

func (d *Delta) add(c Change) { d.Changes = append(d.Changes, c) }

type changeJSON struct {
	Kind     ChangeKind     `json:"do"`
	Name     string         `json:"name,omitempty"`
	Value    jsontext.Value `json:"value,omitzero"` // the value; not omitempty, because null and "" are values
	Deadline int64          `json:"deadline,omitempty"`
	ID       string         `json:"id,omitempty"`
	Text     string         `json:"text,omitempty"`
	Keep     int            `json:"keep,omitempty"`
}

// Encode returns the changes as one line of JSON for a log. The values are included unchanged.
func (d *Delta) Encode() ([]byte, error) {
	list := make([]changeJSON, len(d.Changes))
	for i, c := range d.Changes {
		list[i] = changeJSON{Kind: c.Kind, Name: c.Name, Value: jsontext.Value(c.Value), Deadline: c.Deadline, ID: c.ID,
			Text: c.Text, Keep: c.Keep}
	}
	out, err := json.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("working: encoding changes: %w", err)
	}
	return out, nil
}

// DecodeDelta decodes a line that Encode returned.
func DecodeDelta(text []byte) (*Delta, error) {
	var list []changeJSON
	if err := json.Unmarshal(text, &list, json.RejectUnknownMembers(true)); err != nil {
		return nil, &errs.FieldError{Field: "changes", Err: err}
	}
	d := &Delta{}
	for i, c := range list {
		if !slices.Contains(changeKinds, c.Kind) || (c.Kind == ChangePut) != (len(c.Value) > 0) ||
			(c.Kind == ChangePut || c.Kind == ChangeDelete) != itemName(c.Name) {
			return nil, &errs.FieldError{Field: fmt.Sprintf("changes[%d]", i), Value: human.Quote(string(c.Kind)),
				Err: errors.New("unknown kind of change, or a change with invalid fields")}
		}
		d.add(Change{Kind: c.Kind, Name: c.Name, Value: slices.Clone(c.Value), Deadline: c.Deadline, ID: c.ID, Text: c.Text,
			Keep: c.Keep})
	}
	return d, nil
}

var changeKinds = []ChangeKind{ChangeAttach, ChangePut, ChangeDelete, ChangeAppend, ChangeEmpty, ChangeMark,
	ChangeDiscard, ChangeRestore, ChangeDrop}

func itemName(name string) bool { return name == taskName || len(name) > 1 && isUser(name) }
