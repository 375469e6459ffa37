// Package notecmd is memctl note: the notes of a store.
package notecmd
