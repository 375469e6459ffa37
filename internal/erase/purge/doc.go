// Package purge removes every trace of a document from a store's folder.
//
// # The order
//
//	announced   in the shared page and by the folder tmp/purge, before the first deletion
//	deleted     through the log, and removed from the assemblies that name it
//	recorded    an entry names what is purged, and up to which version (internal/purgefile)
//	rolled      the log continues in a new segment
//	flushed     files and index cover all earlier entries; the previous index is overwritten
//	overwritten segments, archive, displaced files, backups of the index (index.go)
//	searched    the documents' folder, quarantine, parked files (strangers.go)
//
// From rolled on, all steps are under flush.lock. An interrupted purge is remembered until a
// purge is completed: see package flush, overwrite.go.
//
// Unreadable parts of segments, archive, backups of the index and archived segments in quarantine may
// contain what is purged: they are overwritten, and listed in Report.Lost. So a purge completes despite
// any damage there.
//
// After the entry, the purge writes wal/purged-texts; both are written before anything is overwritten:
// whatever is interrupted later, the store knows what was purged. One purge takes any number of documents,
// deletes them in commits of 256, and searches each place once.
//
// # Redaction
//
// Redact (redact.go) commits an entry that names one version; from then on package history hides it.
// Overwrite performs the same steps as a purge, from rolled on, for all versions that are
// redacted and not overwritten yet, and records in wal/purges that they are done. A handle with
// background goroutines calls it when a redaction is a minute old (OverwriteDue), and a backup
// calls it first.
//
// unknown.go finds ids of which a store has no trace, before anything is purged; device.go
// determines why overwriting may not reach the data on the device. Working memory is found by its
// scope's key (working.go).
package purge
