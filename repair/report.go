package repair

import (
	"fmt"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/places"
)

// RepairReport is what Apply did.
type RepairReport struct {
	ID   string // of the repair; with it Undo puts things back. "" when nothing was changed
	Done []Done
	// NoUndo is why Undo will refuse; nil: it will not for want of a key.
	NoUndo error
	// Waiting could not be done because other processes have the store open.
	Waiting   []Action
	Processes []int
	Unsure    []int // those of them that may be dead: they cannot be seen from here
	Elsewhere []int // ids, there, of those of another PID namespace, such as a container
	// Remaining is what verify says now, without the files in quarantine.
	Remaining []Finding
	Summary   Summary
	Worst     Severity // of Remaining
}

// Done is an action that was applied.
type Done struct {
	Action
	Result string // what came of it
	Where  string // where the previous file is now, in the store; "" when there was nothing to keep
	Err    error  // why it could not be done; its subject was left unchanged
}

// UndoReport is what Undo did.
type UndoReport struct {
	ID     string
	Undone []string // paths and ids, in the order in which they were put back
	Left   []string // what cannot be put back, and why; nothing is wrong with it
}

// UndoRefused says in which places a store has changed since the repair: there
// putting things back would destroy what came after it. Nothing was changed.
type UndoRefused struct {
	ID      string
	Reasons []string
}

func (e *UndoRefused) Error() string {
	return fmt.Sprintf("repair %s cannot be undone, the store has changed since: %s", e.ID, strings.Join(e.Reasons, "; "))
}

func (e *UndoRefused) Unwrap() error { return errs.ErrConflict }

// UndoForeign says that a manifest is not obeyed, since nothing proves that this copy of
// the store wrote it, or since it says what no repair writes. Nothing was changed. It
// matches errs.ErrInvalid.
type UndoForeign struct {
	ID     string // as the file's name has it
	Path   string // of the manifest, in the store
	Reason string
	Newest string // the newest repair that this copy can undo, "" when there is none
}

func (e *UndoForeign) Error() string {
	return fmt.Sprintf("%s is refused: %s: %v", places.Shown(e.Path), e.Reason, errs.ErrInvalid)
}

// Unwrap makes the error match errs.ErrInvalid.
func (e *UndoForeign) Unwrap() error { return errs.ErrInvalid }

// Fix is what can be done instead.
func (e *UndoForeign) Fix() string {
	const byHand = "what a repair has set aside is in quarantine/, each with a note that says where it was: copy back what you need"
	if e.Newest != "" {
		return "the newest repair that this copy made is undone by memctl repair --undo " + e.Newest + "; for the other, " + byHand
	}
	return byHand
}

// PartialKey is the member of metadata that marks a memory that was reconstructed from the readable
// parts of a damaged file; its value is true. An assembly, which has no metadata, has the member
// itself. The damaged file is in quarantine.
const PartialKey = "varve_partial"

// Mention is a file that does not belong to a memory and contains part of one that is purged.
type Mention struct {
	Path string // relative to the store, with slashes
	How  string // what it has: "names it"
}
