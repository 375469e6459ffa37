// Package heal carries out repair plans: it repairs a store, which other processes may have open.
//
// # Plan and Apply
//
// Plan turns findings into actions: what is done, for which findings, from which copy, and what is
// lost, which is only data without a copy. It changes nothing. The sources, in order of preference:
// log, archive, the files (for the index), salvage.
//
//	before anything else
//	  make room for the folder       a link, or whatever is in its place, is set aside, but nothing that
//	                                 it leads to. Nothing is recorded as lost in the same repair
//	while no other process has the store open (open.lock and attach.lock exclusively)
//	  write a valid config.json      members that are not valid get their defaults
//	  rewrite the checkpoint      from the valid slot; else opening reads the segments
//	  begin a new log             see renew.go
//	  set the segment aside          it was released: into the archive if it is sound
//	  set the index aside            opening rebuilds it
//	while other processes use the store, each under flush.lock
//	  rebuild the index              from log and files
//	  set aside                      foreign files that are not memories, copies, damaged backups; the
//	                                 sound frames of a damaged copy of a segment are written again
//	  restore the file               byte for byte, with its time
//	  adopt                          an edit; a new file; a deleted memory whose file has returned, as a
//	                                 new version. Hundreds in one commit
//	  salvage                        below
//	  record as lost                 its line is kept in the note, its entry is deleted
//	  take out what is missing       members that do not exist, if requested
//	  recompute the composite        of its members' embeddings
//	  rebuild the vectors          of all embeddings; the old ones stay until then
//
// Apply checks again under the lock before each action: if a file or the store has changed so that it
// would now do something else, it does nothing, and plans again. At the end it verifies everything,
// until there is nothing more to do. What happens to files without an entry is decided in one place
// for Plan and Apply (judge in stray.go). Actions that other processes prevent are left for later, and these
// processes are named.
//
// A document's only copy may have another name, or be in the other folder, where a user has moved
// it: then it is restored from there, or adopted, before that file is set aside. A document that
// exceeds a limit of the present config.json is not adopted: it is treated as invalid.
//
// Nothing is destroyed: before a file is replaced or removed it gets a second name in quarantine/,
// durably, with a note that says why.
//
// Salvage is for documents that the store has, or, while it cannot be opened, may have had. A
// truncated document is read as far as it goes; of a conflict that a merge has marked the first side
// is used. A file that is new to the store is set aside instead. The result is a new version, whose
// metadata has "varve_partial": true. The file is kept. A file that can be read, but has rotted and has no copy, is
// treated in the same way: its content is not reliable.
//
// # Interruption
//
// Apply may be killed before any of its operations, and run again. No record of it is needed: what it rebuilds is
// derived from log and files, a second name in quarantine is durable before its first is replaced or removed
// (changer.go), and each action is decided again from what is there. A repair cannot be undone; package varve's
// Quarantine restores a document that was set aside.
package heal
