// Package docfile keeps one document in one file: it reads, puts in place,
// deletes, lists and sets aside. What the members of a document mean is the
// business of the packages above; this one knows bytes, names and times, and the
// JSON that all documents are written in.
//
// Which file an id has: FileName. How a document is read and written so that unknown members
// survive: Object. Folder, Flusher and Quarantine do what follows.
//
// # On disk
//
//	<root>/memories/<name>            documents, one folder for each kind of thing
//	<root>/tmp/<token>/<w>/<n>        temp files of worker w of the engine <token>
//	<root>/tmp/parked/<believed>      displaced files that somebody may have open
//	<root>/quarantine/<hash>-<name>   what was set aside
//	<root>/quarantine/<hash>-<name>.note.json
//
// <believed> is what was known of the file when it was displaced, so that any
// process can tell later whether it was saved into since:
//
//	folder '@' name '@' size '@' mtime '@' since '@' token '-' n
//	size     bytes; -1: nothing was believed there, so whatever it is, it is not ours
//	mtime    Unix nanoseconds
//	since    Unix seconds, when it was parked
//
// <hash> is the first 16 hex digits of the sha256 of the bytes: the same file
// is set aside once, not at each start. ".part" behind a name in quarantine/ is
// one of our own writes that was cut; it is overwritten by the next try. ".2",
// ".3" … behind <name> are files of equal bytes that somebody held open.
//
// # A temp file and its states
//
// The name of a temp file does not say what is in it, since an exchange puts
// what stood in a document's place under that very name. Its mtime does:
//
//	Surplus time (1985-10-26 01:20:00 UTC)   looked at, and surplus: may be overwritten and removed
//	anything else                            half written, or displaced and not yet looked at: may be a user's work
//
// So a process may die between any two steps, and EmptyTemp tells the pool
// from an edit that was displaced in the last microsecond. What it cannot tell
// from an edit is a temp file that was half written when its process was killed:
// one for each worker at most, and it goes to quarantine too.
//
//	<n>.doomed, <n>.1.doomed …               is being overwritten; its mtime does not count
//
// # Overwriting
//
// Unlinking a file leaves its bytes in free blocks, where no purge reaches them. So what is
// surplus is overwritten before its last name goes, in this order: its places are synced
// (what was displaced has left them durably), it is opened and leased, its name still leads
// to it (else another process has parked it, and deals with it), it is renamed to
// <n>.doomed, the folder is synced, zeros are written and synced, the name is removed, and
// the lease ends with the last descriptor. A process that dies in between leaves a name that
// says what the file is. Files that are linked, open elsewhere or not writable are parked:
// internal/trace overwrites them there, or says why not. When writing or syncing the zeros
// fails the file keeps its name, and the error is returned.
//
//	Close, Wipe            the engine's own pool. After Last what the round displaces is
//	                       renamed at once
//	EmptyTemp, SweepTemp   displaced documents that processes which died have left
//	WipeTemp               all of tmp/, for a purge
//
// While Options.Keeps says that a purge is under way nothing that is displaced is reused,
// removed, or overwritten by the round; it is marked as surplus, and WipeTemp finds it.
// Outside of a purge a pool that is full, and a round with fresh inodes, remove files as
// they are.
//
// # Rounds
//
// Only the holder of flush.lock calls Round. For each document: write a temp
// file, cut it to its length, set its mtime, close it, put it in place, look at
// what was displaced. What was displaced and is ours becomes the next temp file
// of this worker: not truncated to zero and not unlinked, which is what makes
// replacing fast. Up to Options.Direct files are synced one by one before they
// are put in place, and the folders after; larger rounds end with one barrier
// that was opened before the first write.
//
// Put and Sync are the two halves of a round: while one is on its way to the
// disk the next may be put. To a power loss, and to a barrier that fails, all
// that were put since the last End without an error are one round.
//
// Invariants
//
//   - Round returned nil: every change that is not in Result.Blocked is durable.
//   - Round returned an error: each document's place holds what stood there, or
//     the new bytes; the caller repeats the round with at least these changes.
//     The repetition uses fresh inodes and syncs each file: pages that a failed
//     sync has marked clean are never trusted. See Flusher.Repeat.
//   - Power lost within a round: places of that round, and only those, may hold
//     anything, also bytes of another document of the round, since a displaced
//     inode is reused before the exchange is durable. The caller rewrites all of
//     them from the log, after Flusher.Distrust.
//   - A file that is not what the caller believed, and that the caller does not
//     know, goes to quarantine/ before or after it is displaced, is reported, and
//     is never overwritten, reused or removed.
//   - A displaced file is reused only under a granted lease, with one link, and
//     with our own mode and owner; it is removed only under a granted lease.
//     Somebody who has it open goes on reading the old bytes; somebody who saves
//     into it later is found out while it is parked.
//   - Nothing here follows a symbolic link below the root, nor takes an empty or
//     unreadable file for an absent one.
//
// # Assumptions
//
// Rename and exchange are atomic for readers. Across a power loss they are not assumed to be: an
// edit that stands in a place when a round starts gets its second name in quarantine/, durably,
// before the exchange takes the first. What remains is an edit that arrives between that look and
// the exchange, a few microseconds later, followed by a power loss, on a file system that keeps one
// half of an exchange; with a journal there are no halves.
//
// An mtime that we set is not met by chance: it is the commit time of a frame, to the microsecond,
// and any save moves it. Other bytes of the same size and with the old time are found when
// Before.Hash is given.
package docfile
