// Package scopes keeps working memory in a store: package working says what it is, this
// one where it stands.
//
// # Log and file
//
// Each operation that changes a scope is an entry of the log with the change, not the
// state; the file of a scope, in working/, has the state as of an entry. So a file may not
// be lost while a newer one takes its place, as a memory's may: it is written into an inode
// of its own (file.go). A large one in which a little changes all the time may lag behind
// the log (lag.go). When a file cannot be read, log and archive are played (rework.go).
//
// # Operations
//
// Those of one scope are committed together, by the first to come (write.go). Reads are answered by
// the state at hand, once it has what others made durable (read.go).
//
// # Time
//
// What expires does so by ticks, which a clock that is set does not move (ticks.go).
//
// # Where it stands
//
// Above package flush, whose rounds write the files through Scopes. It is no view that can
// be made again: below the mark flushed its files are the truth.
package scopes
