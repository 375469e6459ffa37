// Package copy backs a store up while it is in use, and makes a new store of a backup, as of a
// moment that the backup and the log have.
//
// # Backups
//
// A backup is a folder that stands on its own and is no store:
//
//	memories/<name>.json   each memory, to the byte, with its time
//	assemblies/<name>.json each assembly, likewise
//	files.sha256           a line for each, as sha256sum writes and checks them
//	vector_index/reembed   what a re-embedding had computed, where one was under way
//	wal/<number>.wal       the log from where the files stood to its end; the last is cut there
//	backup.json            what it is: whose, from where to where, with checksums; written last
//
// It is made under the name <folder>.partial, beside which lies a lock; what a
// killed process leaves there is cleared away by the next one that wants the name.
//
// Writers and flushers go on while it is made. From is the position up to which
// the files stood when it began: the log in the backup has all that came after. What
// is copied of a document is the newest at that moment; so the version before it may be
// missing, and only from Whole on, behind the newest version that was copied,
// is each moment complete. Moments from there to the end of the log, and in the
// living store's log on from there, can be restored.
//
// A commit belongs to a moment as a whole, by its last entry.
//
// Vectors are not in it: they are in the documents. By which model they are the backup
// says as of From and of when config.json was read, which may be behind the log's end
// ("models" in backup.json, from format 2 on; a backup of a store in which nobody ever
// spoke of a model has format 1), and the log in it has the changes between. While a change of the model is under way some documents carry
// the vectors of the model before: in files.sha256 a * stands before their names, which
// tells sha256sum of a binary file. A store that is restored to such a moment is amid
// the change as well: what was computed serves for them, or nothing, until the
// re-embedding goes on or is called off.
//
// A restored store is another one: it has a UUID of its own, and versions above
// all that the old one may have given, so that no condition of before fits.
package copy
