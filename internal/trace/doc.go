// Package trace finds what is left of memories, assemblies and scopes that are purged, in files
// that were set aside or parked, and overwrites it. It also finds files of others that mention
// them, which stay.
//
// # Purging
//
// PurgeQuarantine and PurgeParked overwrite what was set aside or parked of some documents
// (Traces says what is), for the holder of flush.lock. In this order: the undo manifests are
// rewritten without the lines about it; what goes is renamed to <name>.purged, and the folder
// synced (a parked file keeps its name, which says what was known of it); each file is opened and
// leased, overwritten, synced, and removed. A piece of the log that
// has entries of others is written again without those that go, and takes the place of the
// old one, which is overwritten under its second name <name>.purged. Done again after a kill
// or an error, whatever is called .purged is overwritten first.
//
// What could not be overwritten is in Unwiped, as an *vfs.UnwipedError, or in what
// PurgeParked returns as held, and in varve.PurgeReport.Left:
//
//	open elsewhere      it stays, with its name; close it there, and purge again
//	not writable        likewise
//	a second name       its name in the store is removed, its bytes are that name's
//
// Only files that others may have mapped, of the index and the vectors, are removed without being
// overwritten when a process has them open, or that cannot be told: unlinked names them, and
// varve.PurgeReport.Unlinked. Any other failure of a write or sync ends the purge with an error,
// and the file keeps the name under which the next one finds it. Unread are files that may hold
// something and cannot be read through; they stay.
package trace
