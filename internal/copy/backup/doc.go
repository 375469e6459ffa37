// Package backup backs up a store while it is in use, and creates a new store from a backup, with the
// state that the first store had at a given moment, if the backup and the log include that moment.
//
// # Backups
//
// A backup is a self-contained folder, and not a store:
//
//	memories/<name>.json     each memory, byte for byte, with its time
//	assemblies/<name>.json   each assembly, in the same way
//	notes/<path>             each note, in the same way
//	working/<name>.json      the working memory of each scope
//	files.sha256             one line per file, in the format of sha256sum
//	files.writers            the writers of the files, as far as they are known
//	files.purges             the purges that the store knows of; missing in a store without a purge
//	vector_index/reembed     the vectors computed so far by a running re-embedding, if there is one
//	wal/<number>.wal         the log, from the state of the files to the end of the backup, where the last
//	                         segment is cut
//	backup.json              the store, the range of the log, and checksums; written last
//
// # Packed backups
//
// A packed backup is one file in the format of package pack, with the same files, in this order: the computed vectors
// as they were at the beginning (vector_index/reembed.first), the documents, the log, the computed vectors as they were
// at the end (vector_index/reembed; missing if the re-embedding has ended meanwhile: then the first copy counts),
// files.writers, files.purges, backup.json. A packed backup has no file files.sha256: a reader generates it from the
// list of package pack, where the mark of an entry is the character before the name in files.sha256. The header has the
// UUID of the store and the position From.
//
// No other names are accepted. A restore refuses a packed backup whose files need more room than the disk has. The
// packed file is read as if it were the folder (packedFS), so damage is handled in the same way, with one exception: a
// single wrong bit of a packed file is not corrected.
//
// A sealed backup is a packed backup that BackupOptions.Seal has encrypted, in the format of age; its first bytes
// identify the format. This package knows neither keys nor the encryption.
//
// A packed backup is either written to the file "packed" in an unfinished folder, which is renamed at the end, or to
// BackupOptions.Output.
//
// # Unfinished folders
//
// A backup, or a restored store, is created in <folder>.<26 random letters>.partial, in this order:
// the lock file, which has that name and .lock; the folder; in it the mark (vfs.Mark), which has
// the name of the folder, the type of copy, and the UUID of the store; then the content. At the end
// the folder is renamed, the mark is removed, then the lock.
//
// If the folder exists and is a mount point (a volume of a container), it cannot be replaced by a
// rename. So the .partial folder and its lock are created in the mount point, and at the end the content
// of the .partial folder is moved up, with wal, checkpoint, config.json and backup.json last. During the move
// the mount point has a mark. If a process is killed during the move, the mount point does not open as a
// store; the next backup or restore reports it as not empty, and does not remove it.
//
// The next backup or restore of the same store, to any folder with the same parent, removes what killed
// processes left there: a .partial folder with a mark that belongs to this user and whose lock is free;
// an empty folder with such a name; a lock without a folder. It follows no link and enters no mount. If
// a folder has a file that neither a backup nor a store has, everything in it stays, and
// BackupInfo.Left names it. The name alone is not sufficient: a user's own folder X.partial is never
// touched.
//
// The new folder gets the owner and the group of its parent folder only if the parent is this
// user's own, or if all users who may read there may also read the copied store
// (vfs.Users.MayFollow).
//
// Writers and flushers continue during a backup. From is the position up to which the files were
// complete when the backup began: the log in the backup has all later entries. The backup copies the
// version of each document that is the newest at the time of copying, so the version before that may be
// missing. Whole is the position after the newest version that was copied. All moments from Whole to the
// end of the log in the backup can be restored, and later ones by the log of the running store.
//
// A commit belongs to a moment as a whole: its last entry decides.
//
// A backup has no vector files: the vectors are in the documents. "models" in backup.json names the
// model as of From and the model when config.json was read, which may be before the log's end (from
// format 2 on; a backup of a store in which no model was ever named has format 1); the log in the
// backup has the changes in between. During a change of the model some documents still have vectors
// of the previous model: in files.sha256 their names are preceded by a *, which for sha256sum marks
// a binary file. A store that is restored to such a moment is also in the middle of the change:
// these documents are searched by the computed vectors, or not found by vector, until the
// re-embedding continues or is cancelled.
//
// A restored store is a different store: it has its own UUID, and versions above all versions that
// the old store may have assigned, so that no earlier condition on a version matches.
//
// files.writers, for a store with writers (package writer), has three parts:
//
//	position space folder/name   one line per file whose writer is known; position is that of the entry
//	                             that describes the writer
//	an empty line
//	the descriptions             lines as in wal/writers, with the UUID of the store
//
// Its sha256 is in backup.json. A restored store numbers the writers of its documents from 1 on. It
// keeps the positions of their descriptions, which are below all positions of its own log.
//
// files.purges has the lines of wal/purges (package internal/purgefile), of the store and of the
// stores from which it was restored, below the end of the log. Its sha256 is in backup.json. A
// restore omits each document that the backup, or the living store, names as purged up to the
// position at which the files of the backup are complete, and each version in a log that is purged or
// redacted, whatever the requested moment; RestoreSource.WithPurged restores them. The restored store
// has all of these lines. The keyed hashes of purged texts are not in a backup.
//
// # A damaged backup
//
// A damaged backup is restored as far as it is sound, unless Strict is set. The report names each
// damaged file and what was done about it:
//
//	backup.json    one wrong bit is corrected by the checksum; otherwise the restore fails
//	files.sha256   each readable line is still used to verify its file (rescue.go)
//	files.writers  the writers of documents that are not in the log are unknown
//	files.purges   documents that the damaged lines name are restored
//	a document     one wrong bit is corrected; otherwise a version with the same hash is taken from the
//	               log, or from the store
//	the log        one wrong bit of a frame is corrected; otherwise the log of the store is used; otherwise
//	               all sound frames around the holes (mend.go)
//
// A document whose last version is in a hole is restored from the file in the backup, which may be
// older; a document that was deleted in a hole is restored. The backup itself is never changed.
package backup
