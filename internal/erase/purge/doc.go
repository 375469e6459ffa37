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
//	searched    in the documents' folder, in quarantine, in parked files (strangers.go)
//
// From the rolling on, all steps are under flush.lock. An interrupted purge is remembered until a
// purge is completed: see package flush, overwrite.go.
//
// What cannot be read in segments, archive, backups of the index and archived segments in quarantine may
// be a part of what is purged: it is overwritten, and named in Report.Lost. So a purge ends, whatever is
// damaged there.
//
// The entry is followed by wal/purged-texts, and precedes the first overwriting: whatever is
// interrupted later, the store knows what was purged. One purge takes any number of documents,
// deletes them in commits of 256, and goes through each place once.
//
// # Redaction
//
// Redact (redact.go) commits an entry that names one version; from then on package history hides it.
// Overwrite goes through the same places as a purge, from the rolling on, for all versions that are
// redacted and not overwritten yet, and records in wal/purges that they are done. A handle with
// goroutines in the background does it when a redaction is a minute old (OverwriteDue), and a backup
// does it first.
//
// unknown.go finds ids of which a store has nothing at all, before anything is purged; device.go
// says why overwriting may not reach the data on the device. Working memory is found by its scope's
// key (working.go).
package purge
