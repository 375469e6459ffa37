// Package fswatch has edits of a store's files taken over while the store is open: the root
// uses it for Options.WatchFiles. It finds out which files to look at, and when; what an
// edit is, and what becomes of it, is the store's business.
//
//	system's notifications ──► names, each with the time of its last event ──► quiet for 300 ms ──► Files.Look
//	a sweep over all files ──►        (pending)
//	absent in Look ──► the same ones still gone at two looks, a second apart ──► Files.Settle
//
// Of all processes that have the store open and a watcher, one watches: the holder of
// wal/watch.lock. When it ends or dies another one takes over, and begins with a sweep.
//
// # What becomes of what somebody does
//
//	saved, in place or by renaming     adopted: a new version; the one before stays in the history
//	a new file                         a new memory or assembly
//	not valid, with marks of a merge,  stays where it is, and is told once; what was there before is served,
//	over a limit of a document, or     as far as log and archive have it. Corrected, it is adopted; replaced by
//	with another id in it              a new version, it goes to quarantine/
//	renamed, or copied to another      stays where it is, and is told once, with its right name. The document is
//	name or into the other folder      not deleted: its own file is put back, of log and archive or else of the other
//	made of an older version           conflict: the newer one stays, the edit goes to quarantine/ and is told
//	deleted                            adopt_deletions in config.json: the memory is deleted, and stays in the
//	                                   history; else the file is put back. Saved again within a second or
//	                                   two, it is an edit
//	most of a folder deleted           taken for an accident: five files or more, and more than half of all. They
//	                                   are put back as far as log and archive have them, and it is told
//	a checkout by git                  what it brings and is not older than what stands here is adopted, many
//	                                   files in one commit. The store writes them again with its own time: some
//	                                   commands of git then want "git status" first (merge --abort: "not uptodate")
//	saved without leave to read it     stays where it is, and is told once; what was there before is served
//
// What we put in place ourselves, in whatever process, is known by its time and size: an
// event for it costs a look at the file and one into the index.
//
// # Where the system cannot tell
//
// When its queue has overflowed, everything is looked at once, slowly. When folders cannot
// be watched at all (the limit of watches is reached, the file system has none) it is
// looked at every Options.Sweep, and whether they can be watched by now is tried each time.
// The host hears of both: varve.EventWatching.
package fswatch
