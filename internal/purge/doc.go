// Package purge takes every trace of a document out of a store's folder.
//
// # The order
//
//	said        in the shared page and by the folder tmp/purge, before the first deletion
//	deleted     through the log, and taken out of the assemblies that name it
//	rolled      the log goes on in a new segment
//	flushed     files and index cover all that came before; what the index was is overwritten
//	overwritten segments, archive, displaced files, backups of the index (index.go)
//	looked for  in the documents' folder, in quarantine, in parked files (strangers.go)
//
// From the rolling on all is done under flush.lock. A purge that is cut anywhere is known until one
// is done: see package flush, overwrite.go.
//
// unknown.go says of which ids a store has nothing at all, before something is purged;
// device.go why overwriting may not reach what the device has. Working memory is found by
// its scope's key (working.go).
package purge
