// Package retention deletes what has expired and the sessions that nobody uses, and counts
// accesses.
//
//	sweep.go      what has expired, an hour later at least: no clock that jumps deletes
//	note.go       wal/expiry, by which the processes agree on that hour
//	sessions.go   the sessions, in one pass over the index; one of them is deleted
//	idle.go       sessions that nobody uses any more
//	touch.go      accesses, collected for a minute
//
// All deletions go through package commit like those of a user, on a condition that is
// judged in the commit.
package retention
