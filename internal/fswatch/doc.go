// Package fswatch makes a store adopt edits of its files while it is open: the root uses it for
// Options.WatchFiles. It determines which files to check, and when; the store decides which of them are
// edits, and what to do with them.
//
//	system's notifications ──► names, each with the time of its last event ──► quiet for 300 ms ──► Files.Look
//	a sweep over all files ──►        (pending)
//	absent in Look ──► still missing at two checks, a second apart ──► Files.Settle
//
// Of all processes that have the store open and a watcher, one watches: the holder of
// wal/watch.lock. When it ends or dies another one takes over, and begins with a sweep.
//
// # Effects of a user's changes
//
//	saved, in place or by renaming     adopted: a new version; the one before stays in the history
//	a new file                         a new memory or assembly
//	not valid, with marks of a merge,  stays where it is, and is reported once; the previous version is served,
//	over a limit of a document, or     as far as log and archive have it. Corrected, it is adopted; replaced by
//	with another id in it              a new version, it goes to quarantine/
//	renamed, or copied to another      stays where it is, and is reported once, with its right name. The document is
//	name or into the other folder      not deleted: its own file is restored, from log and archive or else from the other
//	made of an older version           conflict: the newer one stays, the edit is moved to quarantine/ and reported
//	deleted                            adopt_deletions in config.json: the memory is deleted, and stays in the
//	                                   history; else the file is restored. Saved again within a second or
//	                                   two, it is an edit
//	most of a folder deleted           treated as an accident: five files or more, and more than half of all, or
//	                                   all of them and at least two. They are restored as far as log and archive
//	                                   have them, and this is reported
//	a checkout by git                  its files that are not older than the present ones are adopted, many
//	                                   files in one commit. The store writes them again with its own time: some
//	                                   commands of git then want "git status" first (merge --abort: "not uptodate")
//	saved without read permission      stays where it is, and is reported once; the previous version is served
//
// Files that a process of ours put in place are recognised by time and size: an event for such a
// file costs a stat of the file and a look-up in the index.
//
// # When the system sends no notifications
//
// When the system's queue has overflowed, all files are checked once, slowly. When folders cannot
// be watched at all (the limit of watches is reached, the file system has no notifications) all
// files are checked every Options.Sweep, and each time watching is tried again. Both are reported
// to the host: varve.EventWatching.
package fswatch
