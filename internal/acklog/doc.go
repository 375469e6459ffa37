// Package acklog records, outside a store, what processes that work on the store were told, and compares
// the store with that record: for tests and for the soak test in bench/.
//
// A process prints what it will do and then the result, a line each:
//
//	begin KEY STATE    the process will write the state; "-" is a deletion
//	done KEY STATE     the write was acknowledged
//	not KEY STATE      the write was refused
//	read KEY STATE     the process has read the state
//	counting           the process will increment the counter of all processes
//	counted N          the increment was acknowledged, with the result N
//	uncounted          the increment was refused
//
// An operation that was begun and has no answer may have happened or not, or may still happen.
package acklog
