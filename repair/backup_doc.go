// # Backups
//
// A backup is a folder that stands on its own and is no store:
//
//	memories/<name>.json   each memory, to the byte, with its time
//	assemblies/<name>.json each assembly, likewise
//	files.sha256           a line for each, as sha256sum writes and checks them
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
// A restored store is another one: it has a UUID of its own, and versions above
// all that the old one may have given, so that no condition of before fits.
package repair
