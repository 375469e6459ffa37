package jsondoc

import (
	"fmt"

	"github.com/varve-db/varve/errs"
)

// DeepestDepth is the nesting at which package jsontext returns an error, whatever the limit is.
const DeepestDepth = 10000

// CheckSize returns an error for a document of more bytes than the limit; whole is the name of the
// document in the error.
func CheckSize(whole string, n, limit int) error {
	if n <= limit {
		return nil
	}
	return &errs.FieldError{Field: whole, Value: fmt.Sprintf("of %d bytes", n),
		Limit: fmt.Sprintf("%d bytes of JSON", limit),
		Err:   errs.ErrTooLarge}
}

// CheckDim returns an error for a vector of more dimensions than the limit.
func CheckDim(field string, n, limit int) error {
	if n <= limit {
		return nil
	}
	return &errs.FieldError{Field: field, Value: fmt.Sprintf("of %d dimensions", n),
		Limit: fmt.Sprintf("%d dimensions", limit),
		Err:   errs.ErrTooLarge}
}
