// Package errs holds the errors of the store, so that every package below the
// root can return them and the root can alias them.
//
// A sentinel is for what a caller decides on with errors.Is; a type carries
// what a person needs to know and is reached with errors.As. Every type below
// also matches its sentinel.
package errs
