// Package engine is the core of an open store: the log, the state applied from it, and finding and
// reading a document. It writes no file and commits nothing; the packages that commit, flush, judge
// edits and search are above it and get an *Engine.
//
// # A look-up
//
// A look-up searches the overlay (changes since the index was written, on the heap), then the index (mapped, searched
// in place), then reads the document from the log or, once flushed, from its file. See package state for the first two,
// wal for the log, index for the index, docfile for the files. A version (Version) is a line of the index and, once
// read, the document's bytes.
//
// Before each look-up the process catches up with everything that any process has made durable (CatchUp). The version
// that it finds may be replaced, flushed or released while it is read. Then the look-up starts again, at most FindTries
// times; each time another process has made progress.
//
// # Lifecycle
//
// BeginUse and EndUse enclose every operation; Close waits for operations that have begun. Finish abandons those that
// no caller can cancel, once the log makes no progress.
//
// # Calls upwards
//
// Host has what the engine calls in packages above: they rebuild an index, judge a file that is not the version that
// the index names, and start a round of the flusher.
//
// # Files
//
//	engine                          the Engine, its constructor and its Host
//	enter enter_newer moved         entering the folder of a store, also of a newer version, or of one that was moved
//	progress                        begin and end of operations, and those that make no progress
//	machine                         the engine as the log's Machine: the state, and the index that the replay begins with
//	mapped                          mapping the current index, if another process has written one
//	find past                       the newest version of a document; versions that log and archive still have
//	cache load                      the same, through the cache of documents
//	lines filter share sorted       listings, their filters and orders
//	when expiring overlay_order     times of documents, expired documents, the order of changes in memory
//	follower between as_of          changes between two positions; keeping a view of the log up to date
//	kind stored assemblies          kinds of documents in an open store, and their files
//	writers                         the writer of an entry and its number
//	purges purged_texts             what was purged: documents, versions and texts
//	health mutex                    records for OpenReport and Health; a mutex whose waiters honour their context
package engine
