package vfs

import (
	"errors"
	"strings"

	"github.com/varve-db/varve/errs"
)

// ErrOutside is what an *OutsideError matches.
var ErrOutside = errors.New("outside of the store")

// OutsideError refuses a path that is below none of the folders that an operation is about; see Only.
// It matches ErrOutside and errs.ErrInvalid.
type OutsideError struct {
	Path  string
	Roots []string
}

func (e *OutsideError) Error() string {
	return e.Path + " is outside of " + strings.Join(e.Roots, " and ") +
		", and a store's files lead nowhere else: nothing was done with it; memctl verify names what is wrong in the store"
}

func (e *OutsideError) Unwrap() []error { return []error{ErrOutside, errs.ErrInvalid} }
