package vfs

import (
	"errors"
	"strings"

	"github.com/varve-db/varve/errs"
)

// ErrOutside is the error that every *OutsideError matches. It means that a path is outside of the folders that may be
// used.
var ErrOutside = errors.New("outside of the store")

// OutsideError reports a path that was refused because it is below none of the folders that an operation may use; see
// Only. It matches ErrOutside and errs.ErrInvalid.
type OutsideError struct {
	Path  string
	Roots []string
}

func (e *OutsideError) Error() string {
	return e.Path + " is outside of " + strings.Join(e.Roots, " and ") +
		": the files of a store must not refer to other paths; run memctl verify to find the wrong file"
}

func (e *OutsideError) Unwrap() []error { return []error{ErrOutside, errs.ErrInvalid} }
