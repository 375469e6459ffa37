// Package engine is an open store at its core: the log, what was applied of it, and how a
// document is found and read by that. It writes no file and commits nothing; what commits,
// flushes, judges edits and searches lies above it and is given an *Engine.
//
// # A look-up
//
// It asks the overlay (what changed since the index was written, on the heap), then the index
// (mapped, searched where it lies), then reads the document from the log or, once flushed,
// from its file. See package state for the first two, wal for the log, index for the index,
// docfile for the files. A version (Version) is a line of the index and, once read, the
// document's bytes.
//
// Before each look-up the process catches up with what every process has made durable
// (Sight). What it then finds may be replaced, flushed or released while it is read: the look-up
// starts again, at most FindTries times, each time because another process made progress.
//
// # Lifecycle
//
// Begun and Ended enclose every operation; Close waits for those that have begun. Lasting are
// those that no caller's context ends.
//
// # What stands above
//
// RemakeIndex, Judge and DueNow are given to the engine before the log is opened: making an
// index again, deciding about a file that is not the version that the index names, and
// starting a round of the flusher are not its business.
//
// # Files
//
//	engine       the Engine, and what it is given
//	lasting      begin and end of operations
//	machine      what the log tells and asks: the state, and the index that the log begins with
//	views        mapping the index that stands, when another process has written one
//	find past    the newest version of a document; versions of which log and archive have the bytes
//	load         the same by way of the cache
//	lines filter share expiring   listings in the order of ids, what they pass, reading them in parallel, what has expired
//	follower     keeping a fold of the log up to date
//	as_of        what changed between two positions
//	kind stored name              kinds of documents in an open store, and their files
//	moved        a store that has gone elsewhere
//	told mutex   what is remembered for OpenReport and Health; a mutex whose waiters honour their context
package engine
