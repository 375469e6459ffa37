// Package offsite connects an open store with the sender of its log (package remote/sender), and makes a store of what
// a remote has.
//
// # The log that is sent
//
// Source.Base returns the mark from which the log is sent at the beginning of an epoch: the start of the oldest
// segment, archive included, from which the log can be read without a gap up to the segment that the index needs. So a
// copy has the history that the store has.
//
// # Snapshots
//
// A snapshot is a packed copy (package internal/copy/pack) with these files, in this order:
//
//	checkpoint                 the slots of the store's checkpoint
//	config.json, .gitignore    settings
//	memory_index.json,         the index up to the mark "spilled" of the checkpoint
//	memory_index.delta.json
//	wal/ended, wal/writers,    what the log's folder has beside the log
//	wal/purges, wal/expiry …
//	memories/<name>.json …     the documents, each as its newest version has it, with the time of its file
//
// flush.lock is held only while the checkpoint is read and the files before the documents are opened: they are replaced
// by renaming, so an open file does not change. The documents are read while writers continue. Every version that is
// copied is below End. So a snapshot together with the pieces up to End, or beyond, is in the state in which a crash at
// that position would leave the store, and opening it is a recovery: the index is at its mark, the log has everything
// after that mark, and the files of the documents are as old as the mark "flushed" or newer. An edit of a file that the
// store has not adopted is in no version, and so in no snapshot. Vectors, words and other views are not in it: opening
// the store makes them from the documents.
//
// # Materialize
//
// Materialize makes a store of a snapshot and the pieces from its Begin on, up to a moment. The folder has a mark
// (vfs.Mark) until it is complete, so that the folder of a killed process does not open.
// Several goroutines write the files of the snapshot. Where the file system has a barrier, one sync makes all of them
// durable, before the mark is removed; elsewhere each file is synced. Target.Discard removes a clone that failed, and
// the folder has the mark until nothing else is left in it.
//
// A snapshot whose own epoch is no longer kept is completed by the oldest epoch that is (remote.Snapshot.CompletedBy),
// if its marks are in the string of that epoch. Otherwise it counts as later than the moment, not as damaged.
//
// # Places
//
// Places records, in the folder of the user's state, where the copy of a store is. A record is bound to the UUID of the
// store, the path of its folder and the inode of wal/: a copied folder has none, and a store that was moved gets a
// *MovedStoreError until it takes the copy. Host reads the record every two seconds, and begins again when it has
// changed: new recipients, a purge that does not wait (Place.Erase), the end of the copy (Place.Ending). Remove sets
// Ending first, so that a removal that was interrupted can be repeated.
//
// # Assumptions
//
// The log below the durable mark never changes, except that a purge erases payloads in place. Package remote/sender
// describes how a purge reaches the remote; Source.Erased reads in the entries of purges since which position of the
// log the store had something of what was erased.
package offsite
