// Package retention deletes expired memories and unused sessions, and counts accesses.
//
//	sweep.go      deletes expired memories at least an hour later, so that a jumping clock deletes nothing
//	note.go       wal/expiry and wal/aged, through which the processes agree on that hour
//	sessions.go   lists sessions, in one pass over the index; deletes a session
//	idle.go       deletes sessions that are no longer used
//	touch.go      counts accesses, which are collected for a minute
//
// All deletions go through package commit, like those of a user, with a condition that the commit
// checks.
package retention
