// Package acklog keeps, outside of a store, what processes that work on it were told, and compares the
// store with it: for tests and for the soak in bench/.
//
// A process says what it will do and then what came of it, a line each:
//
//	begin KEY STATE    it will write the state; "-" deletes
//	done KEY STATE     it was acknowledged
//	not KEY STATE      it was refused
//	read KEY STATE     it was read
//	counting           it will add one to what all processes count in
//	counted N          it was acknowledged, and gave N
//	uncounted          it was refused
//
// What was begun and has no answer may have happened or not, or may happen still.
package acklog
