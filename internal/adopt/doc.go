// Package adopt decides about files of documents that were changed from outside: by hand, with git,
// by a tool. The files belong to the user.
//
// # The rule
//
// One rule holds, whether a process watches the files or an edit is found later, when its file is
// read, replaced or repaired:
//
//	valid, made of the newest version   adopted: a new version, through the log (adopt.go)
//	valid, made of an older version     put aside in quarantine/ with a note (aside.go)
//	not valid, or another id            stays, is reported once; the previous version is served (refused.go)
//	a new file                          adopted (times.go)
//	deleted                             a deletion, or put back, as adopt_deletions says (settle.go)
//	most of a folder deleted, or all    put back: an accident (gone.go)
//	damaged                             put back from log or archive, if config.json allows it (outcome.go)
//
// The times of a version are set by the adoption, and its file keeps what was saved in it: created_at
// is that of the memory, updated_at the moment of the adoption. A new file says them itself, or both
// are the time at which it was saved (times.go).
//
// Two differences remain. Without a watching process a new file is adopted by a repair alone, because
// only that tells it from one of a memory that was deleted; and a deletion that no process has seen is
// not taken over where the file was the last copy (unwatched.go).
//
// The files of an opaque kind have no rule of validity and no time of their own: each edit is made of the
// newest version. One that a round has set aside is adopted if it was saved later than that. A file that was emptied
// a moment ago is not judged by a read, which returns the newest version: an editor may be saving it. A file does
// not say its id, so that another name is another document: mv a.md b.md is the deletion of a.md and the creation
// of b.md, each with a history of its own. Of a kind with companions (kind.Kind.Companion, notes) the two become one
// document again when the loss of a.md is settled, in one commit that deletes a.md and writes the companion of b.md: if
// b.md has the inode of a.md, with its content or with half of its lines, or else if only the two have the content
// (moved.go).
//
// A file that appears where another document is in its way (kind.Beside) stays and is reported; it is adopted once
// that document is gone. A file that was replaced by a folder is missing: its deletion is adopted first, and then what
// is in the folder.
//
// Files that are gone, or came while no process had the store open, show in the time of the folder: Reconcile
// compares the names then. The flusher keeps that time in the checkpoint until this was done, so that flushes do
// not hide the change. A tree has a time in each of its folders, and a checkpoint has no room for these: its
// names are compared by the first process that opens the store, each time. While config.json is missing, as in
// a branch of git without the store, no file is put back and no deletion adopted.
//
// Of a kind whose files win (kind.Kind.FileWins, notes) a round leaves a file that is none of the versions in its place,
// and it is judged there: bytes of an older version are a file that lags behind, and are replaced; anything else
// becomes the newest version, also when a newer one or a deletion had not reached the file. The version has the time
// of the file, so that no round writes the file again, and one that is removed before the round stays removed. A
// file that was emptied less than two seconds ago is waited for. The loss of most files is their deletion; only that
// of the whole folder is an accident. A new file that notes_ignore names stays where it is. What was written, renamed
// and deleted while no process had the store open is adopted when the first one opens it. A name in another normal form
// than C is changed to that. After a crash, when a place may hold anything, a round replaces such files as
// those of any other kind, and sets them aside.
//
// # A verdict
//
// Under flush.lock no other process of ours changes files, so a file that differs from the index is
// an edit by hand, or damaged: judge.go decides.
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
package adopt
