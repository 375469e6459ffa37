// Package errs has the errors of a store: those that package varve and the packages below it
// return. Package varve exports each of them under the same name.
//
// A sentinel (ErrNotFound …) is what a caller tests with errors.Is. A type carries the details, and
// is extracted with errors.As:
//
//	var conflict *errs.ConflictError
//	if errors.As(err, &conflict) {
//		… conflict.Expected, conflict.Found
//	}
//
// Every type also matches its sentinel; the comment of the type names it.
package errs
