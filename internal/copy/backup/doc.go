// Package backup backs up a store while it is in use, and makes a new store from a backup, as of a
// moment that the backup and the log cover.
//
// # Backups
//
// A backup is a self-contained folder, and not a store:
//
//	memories/<name>.json   each memory, to the byte, with its time
//	assemblies/<name>.json each assembly, likewise
//	files.sha256           a line for each, as sha256sum writes and checks them
//	files.writers          who wrote them, where that is known
//	vector_index/reembed   the vectors computed so far by a running re-embedding, if there is one
//	wal/<number>.wal       the log from the state of the files to its end; the last is cut there
//	backup.json            the store, the range of the log, and checksums; written last
//
// # What is not whole
//
// A backup, or a store that is restored, is made in <folder>.<26 letters by chance>.partial, in the
// order: the lock, which is that name and .lock; the folder; in it the mark (vfs.Mark), which names
// the folder, what is made, and the store that is copied; then the content. At the end the folder is
// renamed, the mark removed, then the lock.
//
// Where the folder is there and is a mount point (a volume of a container), nothing can take its place: the
// .partial folder and its lock are in it, and at the end what is in that folder moves up, wal,
// checkpoint, config.json and backup.json last. Meanwhile the mount point has a mark. A process that is
// killed while it moves leaves a folder that does not open; it is named as not empty, and not removed.
//
// The next backup or restore of the same store to a folder beside it removes what killed processes
// left, whatever it was to be called: a folder with such a mark whose lock is free, which belongs to
// this user; a folder of such a name in which nothing is; a lock alone. It enters no link and no
// mount, and if a file in the folder is not one that a backup or a store has, everything stays, and is
// named in BackupInfo.Left. A name alone says nothing: what a user calls X.partial is never touched.
//
// The new folder has the owner and the group of the folder that it is in only if that is this user's
// own, or all who may read there may read what is copied (vfs.Users.MayFollow).
//
// Writers and flushers continue while it is made. From is the position up to which the files were
// complete when the backup began: the log in the backup has all later entries. Of each document the
// newest version at the time of copying is copied, so the version before it may be missing.
// Therefore moments are complete only from Whole on, the position behind the newest version that
// was copied. Moments from there to the end of the log, and further on in the log of the running
// store, can be restored.
//
// A commit belongs to a moment as a whole, by its last entry.
//
// A backup has no vector files: the vectors are in the documents. "models" in backup.json names the
// model as of From and as of the reading of config.json, which may be behind the log's end (from
// format 2 on; a backup of a store in which no model was ever named has format 1); the log in the
// backup has the changes between. During a change of the model some documents still have vectors of
// the previous model: in files.sha256 their names have a * in front, which for sha256sum marks a
// binary file. A store that is restored to such a moment is also in the middle of the change: for
// these documents the computed vectors are used, or none, until the re-embedding continues or is
// cancelled.
//
// A restored store is a different store: it has its own UUID, and versions above all that the old
// store may have assigned, so that no earlier condition on a version matches.
//
// files.writers, of a store with writers (package writer), has three parts:
//
//	position space folder/name   a line for each file whose writer is known: the position of the
//	                             explanation of that writer
//	an empty line
//	the explanations             lines as in wal/writers, of the UUID of the store
//
// Its sha256 is in backup.json. A restored store numbers the writers of its documents from 1 on. It
// keeps the positions of their explanations, which are below all positions of its own log.
//
// # A damaged backup
//
// It is restored as far as it is sound, unless that is refused (Strict). The report names each
// damaged file and what was done about it:
//
//	backup.json    one wrong bit is turned back: the checksum says which; else it is refused
//	files.sha256   each line that is left vouches for its file (rescue.go)
//	files.writers  the writers of what the log does not have are unknown
//	a document     one bit; else a version of the same hash in the log, or in the store
//	the log        one bit of a frame; else the log of the store; else all sound frames, around
//	               the holes (mend.go)
//
// A document whose last version is in a hole is as the file in the backup has it, and may be older;
// one that was deleted in a hole is restored. Nothing in the backup is written to.
package backup
