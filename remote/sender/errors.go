package sender

import (
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/segment"
)

// ErrStopped is matched by those errors after which a Sender sends nothing more until the user decides how to
// continue.
var ErrStopped = errors.New("copying has stopped")

// TakenError reports that another machine has begun an epoch at the remote. The error matches ErrStopped.
type TakenError struct {
	Place string
	Epoch uint64          // epoch of this sender
	Head  remote.Position // newest entry, of the other machine
}

// Error returns the message, in one line.
func (e *TakenError) Error() string {
	return fmt.Sprintf("%s: %v: machine %s has taken over the copy (the copy is in epoch %d, this machine in epoch "+
		"%d); the store on this machine continues without a copy -> give the store another place, or take the copy "+
		"back", e.Place, ErrStopped, e.Head.Machine, e.Head.Epoch, e.Epoch)
}

// Unwrap makes the error match ErrStopped.
func (e *TakenError) Unwrap() error { return ErrStopped }

// DivergedError reports that the remote has entries in this sender's epoch that the log of the store does not have.
// The error matches ErrStopped.
type DivergedError struct {
	Place   string
	Head    remote.Position
	Durable segment.LSN // end of the log here
	Err     error       // *past.EndedError
}

// Error returns the message, in one line.
func (e *DivergedError) Error() string {
	return fmt.Sprintf("%s: %v: the copy has entries that the log of this store lacks: the copy ends at position %d, "+
		"the log at position %d: another copy of the store's folder also sends, or this folder was reset to an "+
		"earlier state -> clone the copy and compare, or take over the copy", e.Place, ErrStopped, e.Head.At.LSN,
		e.Durable)
}

// Unwrap makes the error match ErrStopped and Err, the reason.
func (e *DivergedError) Unwrap() []error { return []error{ErrStopped, e.Err} }

// LostError reports that the place no longer contains the remote to which this sender has sent before. The error
// matches ErrStopped.
type LostError struct {
	Place string
	Want  uuid.UUID // remote of this sender
	Has   uuid.UUID // remote at the place; the same one if its entries are gone
}

// Error returns the message, in one line.
func (e *LostError) Error() string {
	what := "the entries of the copy are gone"
	if e.Has != e.Want {
		what = fmt.Sprintf("the place has copy %s, not %s", e.Has, e.Want)
	}
	return fmt.Sprintf("%s: %v: %s -> is the right disk mounted? If the copy is lost, add the place again", e.Place,
		ErrStopped, what)
}

// Unwrap makes the error match ErrStopped.
func (e *LostError) Unwrap() error { return ErrStopped }

// ClaimedError reports that another user of the store sends the log of the store, to another copy or to the same one.
// The archive can keep the log for one sender only. The error matches ErrStopped.
type ClaimedError struct {
	Place string
	Sent  segment.LSN // position up to which the other user has sent the log
}

// Error returns the message, in one line.
func (e *ClaimedError) Error() string {
	return fmt.Sprintf("%s: %v: the log of this store is also sent to the copy of another user (which has the log up "+
		"to position %d), but a store keeps its log for one copy only -> run memctl remote remove as one of the two "+
		"users", e.Place, ErrStopped, e.Sent)
}

// Unwrap makes the error match ErrStopped.
func (e *ClaimedError) Unwrap() error { return ErrStopped }

// OvertakenError reports that another machine has sent an entry after the user of this sender had decided to supersede
// the newest entry of the remote (Binding.Follows). Nothing was superseded. The error matches ErrStopped.
type OvertakenError struct {
	Place string
	Seen  Seen
	Head  remote.Position
}

// Error returns the message, in one line.
func (e *OvertakenError) Error() string {
	return fmt.Sprintf("%s: %v: another machine has sent to the copy since the decision to take it (the newest "+
		"entry was %d, now it is %d) -> take the copy again", e.Place, ErrStopped, e.Seen.Number, e.Head.Number)
}

// Unwrap makes the error match ErrStopped.
func (e *OvertakenError) Unwrap() error { return ErrStopped }

// DamagedHeadError reports that the newest entry of the remote is damaged, and that another machine may have added
// that entry. The error matches ErrStopped and errs.ErrCorrupt.
type DamagedHeadError struct {
	Place string
	Err   error
}

// Error returns the message, in one line.
func (e *DamagedHeadError) Error() string {
	return fmt.Sprintf("%s: %v: the newest entry of the copy is damaged and may be of another machine: %v -> if no other "+
		"machine sends to the copy, take it with --discard", e.Place, ErrStopped, e.Err)
}

// Unwrap makes the error match ErrStopped and Err, the damage.
func (e *DamagedHeadError) Unwrap() []error { return []error{ErrStopped, e.Err} }
