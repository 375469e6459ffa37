// Package engine is the core of an open store: the log, the state applied from it, and finding and
// reading a document. It writes no file and commits nothing; the packages that commit, flush, judge
// edits and search are above it and get an *Engine.
//
// # A look-up
//
// A look-up searches the overlay (changes since the index was written, on the heap), then the index
// (mapped, searched in place), then reads the document from the log or, once flushed, from its
// file. See package state for the first two, wal for the log, index for the index, docfile for the
// files. A version (Version) is a line of the index and, once read, the document's bytes.
//
// Before each look-up the process catches up with everything that any process has made durable
// (Sight). A version that it finds may be replaced, flushed or released while it is read: then the
// look-up starts again, at most FindTries times, each time because another process made progress.
//
// # Lifecycle
//
// BeginUse and Ended enclose every operation; Close waits for operations that have begun. Lasting
// operations are not ended by a caller's context.
//
// # Functions of packages above
//
// RemakeIndex, Judge and DueNow are given to the engine before the log is opened: the packages
// above rebuild an index, decide about a file that is not the version that the index names, and
// start a round of the flusher.
//
// # Files
//
//	engine       the Engine, and what it is given
//	lasting      begin and end of operations
//	machine      the engine as the log's Machine: the state, and the index that the log begins with
//	views        mapping the present index, when another process has written one
//	find past    the newest version of a document; versions of which log and archive have the bytes
//	cache load   the same by way of the cache of documents
//	lines filter share expiring   listings in the order of ids, their filters, reading them in parallel, what has expired
//	follower     keeping a fold of the log up to date
//	as_of        what changed between two positions
//	kind stored name              kinds of documents in an open store, and their files
//	moved        a store that was moved to another folder
//	told mutex   records for OpenReport and Health; a mutex whose waiters honour their context
package engine
