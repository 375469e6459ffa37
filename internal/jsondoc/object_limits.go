package jsondoc

import (
	"fmt"

	"github.com/varve-db/varve/errs"
)

// DeepestDepth is the maximum nesting that package jsontext can read. No configured limit can exceed it.
const DeepestDepth = 10000

// CheckSize returns an error if a document has more bytes than the limit. n is its size; whole is the name of the
// document in the error.
func CheckSize(whole string, n, limit int) error {
	if n <= limit {
		return nil
	}
	return &errs.FieldError{Field: whole, Value: fmt.Sprintf("of %d bytes", n),
		Limit: fmt.Sprintf("%d bytes of JSON", limit),
		Err:   errs.ErrTooLarge}
}

// CheckDim returns an error if a vector has more dimensions than the limit. n is its number of dimensions; field is its
// name in the error.
func CheckDim(field string, n, limit int) error {
	if n <= limit {
		return nil
	}
	return &errs.FieldError{Field: field, Value: fmt.Sprintf("of %d dimensions", n),
		Limit: fmt.Sprintf("%d dimensions", limit),
		Err:   errs.ErrTooLarge}
}
