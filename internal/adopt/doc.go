// Package adopt judges files of documents that were changed from outside: by hand, with git, by a tool. The files
// belong to the user.
//
// # The rule
//
// One rule applies, whether a process watches the files or an edit is found later, when its file is read, replaced or
// repaired:
//
//	valid, based on the newest version   adopted: a new version, through the log (adopt.go)
//	valid, based on an older version     moved to quarantine/ with a note (aside.go)
//	not valid, or another id             stays, is reported once; the previous version is served (refused.go)
//	its text was purged                  stays, and is reported: setting it aside would keep the text (refused.go)
//	a new file                           adopted (times.go)
//	deleted                              a deletion, or restored, depending on adopt_deletions (settle.go)
//	most of a folder deleted, or all     restored: an accident (gone.go)
//	damaged                              restored from log or archive, if config.json allows it (outcome.go)
//
// The times of a version are set by the adoption, and its file keeps what was saved in it: created_at is that of the
// memory, updated_at the time of the adoption. A new file that contains times keeps them; otherwise both are the time
// at which the file was saved (times.go).
//
// Two differences remain. Without a watching process, a new file is adopted only by a repair, because only a repair can
// distinguish it from the file of a deleted memory; and a deletion that no process has seen is not adopted if the file
// was the last copy (unwatched.go).
//
// The files of an opaque kind have no rule of validity and contain no times: each edit is based on the newest version.
// An edit that a round has set aside is adopted if it was saved later than that version. A file that has just been
// emptied is not judged by a read, which returns the newest version: an editor may be saving it. A file does not
// contain its id, so another name is another document: mv a.md b.md is the deletion of a.md and the creation of b.md,
// each with its own history. For a kind with companions (kind.Kind.Companion, notes) the two become one document again
// when the loss of a.md is settled, in one commit that deletes a.md and writes the companion of b.md. The condition is
// that b.md has the inode of a.md, with its content or with half of its lines, or else that only these two have the
// content (moved.go).
//
// A file that appears while another document is in its way (kind.Beside) stays and is reported; it is adopted once that
// document is gone. A file that was replaced by a folder is missing: its deletion is adopted first, and then the files
// in the folder.
//
// The files of a folder that vanished are restored in batches. Until all are back, none of the missing ones is deleted:
// the file wal/restoring, which package docfile writes before the folder is created again, tells every process, and the
// first one continues: when it is opened, every few seconds with a background goroutine, and when it is closed without
// one (roots.go). The same applies when most files of a folder are missing, and to a folder that was missing when the
// store was opened. If a few files cannot be put back, the record names these instead of the folder. A lost note is
// deleted rather than restored if the user has put something at its path that excludes it: a folder, or a file at the
// path of a folder above. This does not apply if something other than a folder is at the path of an adopted
// folder itself: it stays, the notes of the folder are served from the log, and they are restored once it is gone.
//
// Files that were deleted or created while no process had the store open are noticed by the time of the folder:
// Reconcile compares the names then. The flusher keeps that time in the checkpoint until the comparison is done, so
// that flushes do not hide the change. A tree has a time for each of its folders, and a checkpoint has no space for
// these: its names are compared by the first process that opens the store, each time. While config.json is missing, as
// in a branch of git without the store, no file is restored and no deletion adopted.
//
// Some kinds have files that take precedence over the log (kind.Kind.FileWins, notes). If such a file has the content
// of no version, a round leaves it in its place, and it is judged there. If it has the content of an older version, it
// lags behind the log, and is replaced. Any other content becomes the newest version, even if the log has a newer
// version, or a deletion, that had not reached the file. That version has the time of the file, so that no round writes
// the file again, and a file that is removed before the round stays removed. Judging a file that was emptied less than
// two seconds ago is delayed. If most files are missing, they count as deleted; only the loss of the whole folder is an
// accident. A new file that notes_ignore matches stays where it is. Files that were written, renamed and deleted while
// no process had the store open are adopted when the first process opens it. A name that is not in Unicode's normal
// form C is changed to form C. After a crash, when a file may have any content, a round replaces the files of these
// kinds like all others, and sets them aside.
//
// # A verdict
//
// Under flush.lock no other process of the store changes files, so a file that differs from the index is an edit by
// hand, or damaged: judge.go decides.
//
// A vector of an older model in an edited file is replaced by that of the current model (model.go). Differences at the
// opening of the store are found by names alone (drift.go).
//
// # Which process watches
//
// A watcher gets Files: it lists the suspect files (suspects.go), and checks some files (look.go), missing files
// (gone.go), and files whose names belong to no document (stray.go); settle.go carries out many decisions together. Of
// all processes that have the store open, one watches.
//
// # Layering
//
// The package is above package commit, through which an edit becomes a version, and above package flush, which
// provides the lock, puts files in place, and passes the files that a round has set aside to this package.
package adopt
