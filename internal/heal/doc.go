// Package heal does what a plan of repair says: it repairs a store, which others may have open,
// and undoes a repair.
//
// # Plan and Apply
//
// Plan makes actions of the findings: what is done, for which of them, from which
// copy, and what is lost, which is only what no copy holds. It changes nothing.
// What heals, in this order: log, archive, the files (for the index), salvage.
//
//	before anything else
//	  make room for the folder       a link, or what else is in its place: it itself, and nothing that
//	                                 it leads to. Nothing is given up in the same repair
//	while nobody else has the store open (open.lock and attach.lock exclusively)
//	  write a valid config.json      members that are not valid get their defaults
//	  write the checkpoint anew      the slot that holds; else opening reads the segments
//	  begin the log anew             see renew.go
//	  set the segment aside          it was released: into the archive if it is sound
//	  set the index aside            opening rebuilds it
//	beside others, each under flush.lock
//	  rebuild the index              from log and files
//	  set aside                      strangers that are no memories, copies, damaged backups
//	  restore the file               byte for byte, with its time
//	  adopt                          an edit; a new file; never what was deleted. Hundreds in one commit
//	  salvage                        below
//	  record as lost                 its line is kept in the note, its entry is deleted
//	  take out what is missing       members that are not there, when that is asked for
//	  recompute the composite        of its members' embeddings
//	  make the vectors anew          of all embeddings; the old ones stay until then
//
// Apply looks again under the lock before each action, and at everything when it
// is done, until there is nothing more to do. What would need that others are
// gone waits, and names them.
//
// A document's only copy may lie under another name, or in the other folder, where
// somebody has moved it: then it is put back from there, or adopted, before that file is set
// aside. What is over a limit of today's config.json is not adopted: it counts as not valid.
//
// Nothing is destroyed: what is replaced or taken away has a second name in
// quarantine/ before, durably, with a note that says why.
//
// Salvage: a document that breaks off is read as far as it goes; of a conflict
// that a merge has marked the first side is taken. What comes of it is a new
// version, whose metadata has "varve_partial": true. The file is kept. The same
// is done with a file that still reads, but has rotted and has no copy: what it
// says is not to be relied upon.
//
// # Undo
//
// Undo puts back what stood there, the damage included, if nothing has changed
// in these places since; quarantine keeps what it has.
package heal
