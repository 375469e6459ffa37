// Package edits decides about files of documents that were changed from outside: by hand, with git,
// by a tool. The files belong to the user.
//
// # A verdict
//
// A file that differs from the index is found when it is read, replaced, verified, or reported by
// the watching process. Under flush.lock no other process of ours changes files, so the file is an
// edit by hand, or damaged. judge.go decides:
//
//	valid, and newer than the previous file   adopted: a new version, through the log (adopt.go)
//	valid, beside a newer version             put aside in quarantine/ with a note (aside.go)
//	not valid                                 stays, is reported once; the previous version is served (refused.go)
//	missing or damaged                        restored from the log, if config.json allows it (outcome.go)
//
// A vector of an older model in an edited file is replaced by that of the present model (model.go).
// Differences at the opening of the store are found by names alone (drift.go).
//
// # Which process watches
//
// A watcher gets Files: it lists the suspect files (suspects.go), and checks some files (look.go),
// missing files (gone.go), and files whose names belong to no document (stray.go); settle.go
// carries out many decisions together. Of all processes one watches.
//
// # Layering
//
// Above package commit, through which an edit becomes a version, and flush, which provides the
// lock, puts files in place, and asks this package about the files that a round has set aside.
package edits
