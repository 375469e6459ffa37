package remote

import (
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/segment"
)

var (
	// ErrMoved is the error that every *MovedError matches.
	ErrMoved = errors.New("the entry does not follow the end of the copy")
	// ErrNoRemote reports that a place has no copy of a store.
	ErrNoRemote = errors.New("no copy of a store here")
	// ErrSealed reports that a copy is encrypted and was opened without keys: see package remote/sealed. The error
	// matches errs.ErrInvalid.
	ErrSealed = fmt.Errorf("the copy is sealed: %w", errs.ErrInvalid)
	// ErrUnsuitable reports that a place lacks something that a copy needs. For example, if two writers rename files
	// to the same name, only one of them may succeed.
	ErrUnsuitable = errors.New("not suitable for a copy of a store")
)

// FormatError returns an error if this program cannot read pieces and snapshots of the given format without keys, and
// nil otherwise. The error matches ErrSealed if the format is the encrypted one, and errs.ErrNewerFormat if a newer
// program wrote it.
func FormatError(place string, format uint32) error {
	switch {
	case format <= Format:
		return nil
	case format == SealedFormat:
		return fmt.Errorf("%s: %w", place, ErrSealed)
	}
	return &errs.NewerError{Path: place, Format: uint64(format), Reads: SealedFormat}
}

// MovedError reports that an entry was not added, because the copy does not end at the position at which the entry
// begins. Possible reasons are: another sender was faster, another epoch has begun, or the entry was added before. The
// error matches ErrMoved.
type MovedError struct {
	Place string
	Head  Position // the newest entry
}

// Error returns the message, in one line.
func (e *MovedError) Error() string {
	return fmt.Sprintf("%s: %v, which is at position %d of epoch %d", e.Place, ErrMoved, e.Head.At.LSN, e.Head.Epoch)
}

// Unwrap makes the error match ErrMoved.
func (e *MovedError) Unwrap() error { return ErrMoved }

// OtherStoreError reports that a remote has the copy of a store other than the requested one. The error matches
// errs.ErrInvalid.
type OtherStoreError struct {
	Place string
	Has   uuid.UUID // the store whose copy it is
	Want  uuid.UUID
}

// Error returns the message, in one line.
func (e *OtherStoreError) Error() string {
	return fmt.Sprintf("%s has the copy of store %s, not of %s -> give each store a place of its own", e.Place, e.Has,
		e.Want)
}

// Unwrap makes the error match errs.ErrInvalid.
func (e *OtherStoreError) Unwrap() error { return errs.ErrInvalid }

// TruncatedError reports that the remote no longer has the pieces at the requested position, for example because they
// were pruned. The error matches errs.ErrTruncated.
type TruncatedError struct {
	Place  string
	Epoch  uint64
	From   segment.LSN
	Oldest segment.LSN // position from which pieces of the epoch are kept, 0 if none are
}

// Error returns the message, in one line.
func (e *TruncatedError) Error() string {
	s := fmt.Sprintf("%s: position %d of epoch %d is %v of the copy", e.Place, e.From, e.Epoch, errs.ErrTruncated)
	if e.Oldest != 0 {
		s += fmt.Sprintf(", which begins at %d", e.Oldest)
	}
	return s
}

// Unwrap makes the error match errs.ErrTruncated.
func (e *TruncatedError) Unwrap() error { return errs.ErrTruncated }
