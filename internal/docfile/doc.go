// Package docfile keeps each document in a file: it reads files, puts them in place, deletes, lists and
// sets them aside. This package handles names, bytes and times of files, and does not interpret their
// content: package jsondoc handles the JSON text of a document. The exported types are Folder, Flusher and
// Quarantine.
//
// # On disk
//
//	<root>/memories/<name>            documents, one folder for each kind of thing
//	<root>/notes/<path>               documents of a tree, in folders: see FolderOptions.Tree
//	<root>/tmp/<token>/<w>/<n>        temp files of worker w of the engine <token>
//	<root>/tmp/<token>/<w>-<k>/<n>    temp files in the k-th additional folder of worker w, which begins an additional
//	                                  folder after every Options.TempFiles files
//	<root>/tmp/parked/<believed>      displaced files that another process may have open
//	<root>/quarantine/<hash>-<name>   a file that was set aside
//	<root>/quarantine/<hash>-<name>.note.json
//	<root>/quarantine/unreadable-<name>
//	                                  what was not hashed: a folder, a link, a file that is too large or unreadable
//
//	<root>/wal/restoring              folders whose files are being restored; absent if no files are being restored
//
// <believed> is what was known of the file when it was displaced, so that any process can later determine
// whether the file was modified since:
//
//	folder '@' name '@' size '@' mtime '@' since '@' token '-' n
//	name     of the document; ParkedName: '%', '/' and '@' are escaped, and a long one is cut and has a hash
//	size     bytes; -1: no file was expected there, so the file is not ours
//	mtime    Unix nanoseconds
//	since    Unix seconds, when it was parked
//
// <hash> is the first 16 hex digits of the sha256 of the bytes: the same file is set aside once, not at
// each start. A name in quarantine/ that ends in ".part" is an interrupted write of this package, which the
// next attempt overwrites; a file whose name ends in ".purged" is removed by the next purge. A <name> with
// such an ending gets "_" appended. ".2", ".3" … behind <name> are files with equal bytes that another
// process had open. Everything that is set aside has a name of this form; older versions also used
// aside-<time>.<n>-<name>, <version>.<n>-<name>, repair-<id>.<n>-<name>, torn-tail-<lsn>.bin without a
// note, and repair-<id>.undo.jsonl, the record of a repair, which nothing reads (IsUndo).
//
// Quarantine.Pieces lists all that is there, including files of other packages. Quarantine.Drop removes the
// file before its note, so an interrupted removal leaves a note without its subject (Piece.Lone), as an
// interrupted Special does.
//
// # Trees
//
// The name of a document in a tree is a path with slashes: of at most MostDepth elements, MostElement bytes
// an element and MostPath bytes in all, valid UTF-8 without control characters and backslashes (CheckPath).
// A file system with lower limits fails the round: a kind that must work there needs shorter names.
//
// A round creates the folders that it needs, each durable in its parent before a file is put into it, and
// removes those that a deletion has emptied. A round that is not made durable by a barrier syncs all
// folders of its changes, including folders that already existed, since a process that was killed may have
// created one without syncing it. Anything else in the place of a folder blocks the change. With a regular
// file there the documents below are missing; with a link they cannot be read, because no link is followed.
// A folder in the place of a document means that the document is missing; it blocks a change that writes
// the document. The caller makes sure that the path of a document is not a folder in the path of another:
// see kind.Beside.
//
// # Folders that have to exist
//
// In some folders a user deletes a document by deleting its file. Such a folder can itself vanish by accident. Then its
// files are restored, one after the other, and until all of them are back, a missing file does not count as a deletion.
// The holder of flush.lock records this state in wal/restoring before it creates the folder again (Folder.Restore), and
// records its end when all files are durable (Folder.Restored). A round that creates a missing folder of
// FolderOptions.Kept also writes this record. Each line of wal/restoring is JSON; the last line of a folder is the
// valid one, and an incomplete line is ignored:
//
//	{"folder":"notes/vault"}               the path of the folder in the store, with the names of files
//	{"folder":"notes/vault","done":true}   its files are back; when all are, the file is removed
//
// From longRestoring bytes on the file is replaced by one with a line for each folder that is being restored.
//
// # Empty documents
//
// An empty file is damage, unless FolderOptions.Empty is set. Where it is set, a file that was emptied by
// hand is an edit like any other, but a round that meets it does not set it aside, since it has no content
// to lose.
//
// # A temp file and its states
//
// The name of a temp file does not say what it contains, since an exchange gives this name to the previous
// file of a document. Its mtime does:
//
//	Surplus time (1985-10-26 01:20:00 UTC)   checked, and surplus: may be overwritten and removed
//	anything else                            half written, or displaced and not yet checked: may be a user's work
//
// So a process may die between any two steps, and EmptyTemp can distinguish files of the pool from an edit
// that was displaced in the last microsecond. It cannot distinguish an edit from a temp file that was half
// written when its process was killed. So it moves such temp files and edits to quarantine; there is at most
// one such temp file for each worker.
//
//	<n>.doomed, <n>.1.doomed …               is being overwritten; its mtime does not count
//
// # Files without a name
//
// In a round of Options.Unnamed changes or more, a document that does not exist gets a file that has no name while it
// is written (O_TMPFILE in the worker's folder), and gets its name in the folder of the documents when it is complete.
// That takes five system calls with handles of both folders, where a temp file and a rename take nine, and changes one
// folder in place of two. A killed process leaves nothing of such a file. For durability it is the same as a rename:
// the name is durable when the folder is synced, and says nothing about the content; each file is synced before it
// gets its name, or the barrier of the round follows. If a file turns out to be at the path, the new file gets a name
// in tmp/, and the exchange follows. Documents in trees, and systems without such files, use temp files with names.
//
// The handles are those of the folders at the start of the round. If one has another path afterwards, the round fails
// and is repeated.
//
// # Overwriting
//
// Unlinking a file leaves its bytes in free blocks, where no purge reaches them. So a surplus file is
// overwritten before its last name is removed, in this order: the folders of the documents are synced (the
// displaced files have left them durably); the file is opened and leased; its name must still lead to it
// (otherwise another process has parked the file, and handles it); it is renamed to <n>.doomed; the folder
// is synced; zeros are written and synced; the name is removed; and the lease ends with the last
// descriptor. A process that dies in between leaves a name that says what the file is. Files that are
// linked, open elsewhere or not writable are parked: internal/erase/trace overwrites them there, or reports
// why it cannot. If writing or syncing the zeros fails, the file keeps its name, and the error is returned.
//
//	Close, Wipe            the engine's own pool. After Last, files that the round displaces are
//	                       renamed at once
//	EmptyTemp, SweepTemp   displaced documents that killed processes left
//	WipeTemp               all of tmp/, for a purge
//
// While Options.Keeps reports a running purge, the round does not reuse, remove or overwrite displaced
// files, except those that the purge does not need (see Flusher.Spare) and that are as the last durable
// round wrote them; it marks them as surplus, and WipeTemp finds them. Outside of a purge a full pool, and
// a round with fresh inodes, remove files without overwriting them.
//
// # Rounds
//
// Only the holder of flush.lock calls Round. For each document: write a temp file, cut it to its length,
// set its mtime, close it, put it in place, check the displaced file. A displaced file of our own becomes
// the next temp file of this worker: it is neither truncated to zero nor unlinked, which makes replacing
// fast. In a round of up to Options.Direct files each file is synced before it is put in place, and the
// folders are synced afterwards; a larger round ends with one barrier, which was opened before the first
// write.
//
// Put and Sync are the two halves of a round: while one round is being synced, the next may be put. After a
// power loss or a failed barrier, all rounds since the last successful End are treated as one round.
//
// Invariants
//
//   - Round returned nil: every change that is not in Result.Blocked is durable.
//   - Round returned an error: each document's place has the previous file or the new bytes; the
//     caller repeats the round with at least these changes. The repetition uses fresh inodes and
//     syncs each file: pages that a failed sync has marked clean are never trusted. See
//     Flusher.Repeat.
//   - Power lost within a round: places of that round, and only those, may contain anything, even
//     bytes of another document of the round, since a displaced inode is reused before the exchange
//     is durable. The caller rewrites all of them from the log, after Flusher.Distrust.
//   - A file that differs from what the caller expected, and that the caller does not know, is
//     moved to quarantine/ before or after it is displaced, is reported, and is never overwritten,
//     reused or removed.
//   - A displaced file is reused only under a granted lease, with one link, and with our own mode
//     and owner; it is removed only under a granted lease. A process that has it open continues to
//     read the old bytes; a later write into it is detected while it is parked.
//   - Nothing here follows a symbolic link below the root, or treats an empty or unreadable file as
//     absent.
//
// # Assumptions
//
// Rename and exchange are atomic for readers. Across a power loss they are not assumed to be: an edit that
// is in a place when a round starts gets its second name in quarantine/, durably, before the exchange takes
// the first. The remaining case is an edit that arrives between that check and the exchange, a few
// microseconds later, followed by a power loss, on a file system that keeps one half of an exchange; with a
// journal there are no halves.
//
// An mtime that we set does not occur by chance: it is the commit time of a frame, to the microsecond, and
// any save changes it. Different bytes of the same size and with the old time are detected if Before.Hash
// is given.
package docfile
