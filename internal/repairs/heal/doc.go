// Package heal carries out repair plans: it repairs a store, which other processes may have open.
//
// # Plan and Apply
//
// Plan turns findings into actions: what is done, for which findings, from which copy, and what is
// lost, which is only data without a copy. Plan changes nothing. The sources, in order of preference, are
// log, archive, the files (for the index), salvage. The actions:
//
// Before all others:
//
//	make room for the folder       a link, or whatever is in the place of a folder of the store, is set
//	                               aside; the target of the link stays unchanged. The same repair records
//	                               nothing as lost
//
// While no other process has the store open (open.lock and attach.lock are held exclusively):
//
//	write a valid config.json      members that are not valid get their defaults
//	rewrite the checkpoint         from the valid slot; otherwise opening reads the segments
//	begin a new log                see renew.go
//	set the segment aside          a segment that the log has released; if it is sound, it is copied to
//	                               the archive
//	set the index aside            opening rebuilds it
//
// While other processes use the store, each action under flush.lock:
//
//	rebuild the index              from log and files
//	set aside                      foreign files that are not memories, copies, damaged backups; the
//	                               sound frames of a damaged copy of a segment are written again
//	restore the file               byte for byte, with its time
//	adopt                          an edit; a new file; a deleted memory whose file has returned, as a
//	                               new version. Hundreds in one commit
//	salvage                        see below
//	record as lost                 its line is kept in the note, its entry is deleted
//	take out what is missing       removes members that do not exist from an assembly, if requested
//	recompute the composite        from the embeddings of the members
//	rebuild the vectors            from all embeddings; the old ones stay until then
//
// Apply checks again under the lock before each action: if a file or the store has changed so that
// the action would now have another effect, Apply skips the action, and plans again. At the end it
// verifies the whole store, until nothing is left to do. Plan and Apply decide in one place what
// happens to files without an entry (judge in stray.go). Actions that other processes prevent are
// left for later, and the report names those processes.
//
// A document's only copy may have another name, or be in the other folder, where a user has moved
// it: then it is restored from there, or adopted, before that file is set aside. A document that
// exceeds a limit of the present config.json is not adopted: it is treated as invalid.
//
// Nothing is destroyed: before a file is replaced or removed it gets a second name in quarantine/,
// durably, with a note of the reason.
//
// Salvage is for documents that the store has, or, while it cannot be opened, may have had. A
// truncated document is read up to the point of damage; of a conflict that a merge has marked, the
// first side is used. A file that is new to the store is set aside instead. The result is a new
// version, whose metadata has "varve_partial": true. The damaged file is kept. A file that can be
// parsed, but has changed by decay of the medium and has no copy, is treated in the same way: its
// content is not reliable.
//
// # Interruption
//
// Apply may be killed before any of its operations, and run again. No record of its progress is
// needed: what it rebuilds is derived from log and files, a second name in quarantine is durable
// before the first is replaced or removed (changer.go), and each action is decided again from the
// state of the store. A repair cannot be undone; package varve's Quarantine restores a document
// that was set aside.
package heal
