// Package edits judges the files of documents that others have changed: by hand, with git,
// by a tool. The files are the user's.
//
// # A verdict
//
// A file that is not as the index has it is met when it is read, replaced, verified, or seen by the
// process that watches. Under flush.lock no process of ours changes files: then it is an edit by
// hand, or damage. judge.go decides:
//
//	valid, and newer than what stood there    adopted: a new version, through the log (adopt.go)
//	valid, beside a newer version             put aside in quarantine/ with a note (aside.go)
//	not valid                                 stays, is told once; the version before it is served (refused.go)
//	gone or rotten                            put back from the log, if config.json lets it (outcome.go)
//
// A vector in an edited file that an older model made is replaced by the one that counts
// (model.go). What differed when the store was opened is found by names alone (drift.go).
//
// # Which process watches
//
// Files is what a watcher is given: which files are suspect (suspects.go), and to look at
// some (look.go), at those that are gone (gone.go), or whose names are no document's
// (stray.go); settle.go carries out many together. Of all processes one watches.
//
// # Where it stands
//
// Above package commit, through which an edit becomes a version, and flush, which gives the
// lock, puts files in place, and asks for what a round has set aside.
package edits
