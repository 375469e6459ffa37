// Package trace finds remains of purged memories, assemblies and scopes in files in quarantine and in
// parked files, and overwrites them. It also finds foreign files that mention them, which are kept.
//
// # Purging
//
// PurgeQuarantine and PurgeParked overwrite the files of some documents in quarantine and in tmp/parked
// (a Set determines which), for the holder of flush.lock. The order is: the undo files of
// older versions that name one of these documents are removed; the files are renamed to <name>.purged, and
// the folder is synced (a parked file keeps its name, which identifies its document); each file is
// opened and leased, overwritten, synced, and removed. A piece of the log that also has entries of
// other documents is rewritten without the purged ones, and replaces the old piece, which is
// overwritten under its second name <name>.purged. When the purge is repeated after a kill or an
// error, files named .purged are overwritten first.
//
// A set of redacted versions (redacted.go) finds entries by their positions, and files by their exact
// bytes: what other versions of the document have stays.
//
// Files that could not be overwritten are in Unwiped, as *vfs.UnwipedError, or in the result held
// of PurgeParked, and in varve.PurgeReport.Left:
//
//	open elsewhere      kept, with its name; close it there, and purge again
//	not writable        likewise
//	a second name       its name in the store is removed, its bytes belong to the other name
//
// Only files that other processes may have mapped, of the index and the vectors, are removed
// without being overwritten if a process has them open, or if this cannot be determined: unlinked
// and varve.PurgeReport.Unlinked name them. Any other failure of a write or sync ends the purge
// with an error, and the file keeps the name under which the next purge finds it. Unread lists files
// that may contain traces and cannot be read completely; they are kept.
package trace
