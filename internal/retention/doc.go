// Package retention deletes expired memories and unused sessions, and counts accesses.
//
//	sweep.go      expired memories, at least an hour later, so that a jumping clock deletes nothing
//	note.go       wal/expiry and wal/aged, by which the processes agree on that hour
//	sessions.go   lists sessions, in one pass over the index; deletes a session
//	idle.go       sessions that are no longer used
//	touch.go      accesses, collected for a minute
//
// All deletions go through package commit like those of a user, on a condition that is
// judged in the commit.
package retention
