// Package errs has the errors of a store: what package varve and the packages below it return.
// Package varve has each of them under the same name.
//
// A sentinel (ErrNotFound …) is for what a caller decides on with errors.Is. A type carries what
// a person needs to know, and is reached with errors.As:
//
//	var conflict *errs.ConflictError
//	if errors.As(err, &conflict) {
//		… conflict.Expected, conflict.Found
//	}
//
// Every type also matches its sentinel; its comment says which.
package errs
