// Package acklog records, outside a store, what processes that work on the store were told, and compares
// the store with that record: for tests and for the soak test in bench/.
//
// A process prints what it will do and then the result, a line each:
//
//	begin KEY STATE    it will write the state; "-" deletes
//	done KEY STATE     it was acknowledged
//	not KEY STATE      it was refused
//	read KEY STATE     it was read
//	counting           it will increment the counter of all processes
//	counted N          it was acknowledged, with the result N
//	uncounted          it was refused
//
// An operation that was begun and has no answer may have happened or not, or may still happen.
package acklog
