// Package migrate moves a store to another folder, and reports whether the store of a folder was
// moved away.
//
// # Migration
//
// A migration moves a store to another folder, possibly on another disk or file system. A moved
// store is the same store: same UUID, same versions, same history, so that a host's conditions on
// versions stay valid. (A restored store is a different store.) There must never be two stores with one
// UUID, so the copy is not a store until the switch. The steps:
//
//	copy      every memory is copied, byte for byte and with its time, while other processes use the store
//	catch up  memories that the log shows to have changed since are copied again, until few are left
//	compare   each memory of the store is compared with its copy; the other documents are copied
//	switch    while no other process has the store open, the rest of the folder is copied (index, log,
//	          archive, backups, quarantine), and every byte of it is compared; the copy is opened and
//	          verified; then the note in the old place makes it the store
//	remove    the new place is verified again; in the old place every file is removed whose bytes were
//	          copied, or are in the new place now; any other file is kept and reported, whatever its time
//
// Other processes have to wait only for the switch, which does not copy again what was copied before.
//
// # The state: migrate.json, in the new place
//
//	{"varve_migration":1,       format
//	 "id":"<uuid>",             of this migration
//	 "store":"<uuid>",          the store of which this is a copy
//	 "from":"/abs/old",         where that store is
//	 "began":"<time>",
//	 "state":"copying",         or "ready": a complete copy, which the note may make the store
//	 "lsn":<LSN>,               position up to which the copy has the memories, durably
//	 "lost":true}               a sync failed: written data may be lost; everything is copied again
//
// This file is the first that is created in the new place, and the last that is removed there. A folder
// with this file is not a store, unless the state is "ready" and the note in the old place has the same
// id: then the switch was made, and the first process that opens the store removes the file.
//
// # The note: moved.json, in the old place
//
//	{"varve_moved":1,"id":"<uuid>","store":"<uuid>","to":"/abs/new","when":"<time>"}
//
// The rename of this file is the switch: before it the old place is the store, after it the new
// one. Opening the old place returns a *errs.MovedError. The note is written a second time, to
// wal/moved.json, which git ignores in every store, even if an older program wrote the .gitignore
// or a checkout restored it; moved.json is added to .gitignore. Either note is sufficient. To
// return to the old place, as long as nothing was written in the new one, remove the new place and
// then the notes moved.json and wal/moved.json.
//
// # What was moved: moved.json.files, in the old place
//
//	{"varve_moved_files":1,"id":"<uuid>"}⏎     the migration
//	8 bytes a file, little-endian              xxhash64 of its name in the store, NUL, and its bytes
//	8 bytes                                    xxhash64 of everything before
//
// It is written just before the note, from the files that were compared, and removed last. If it is
// missing (the disk was full), only files that the new place still has are removed.
//
// # Decay of the medium
//
// If a file and its copy have the same size and time but differ, one of them has decayed on its
// medium. If the file is a memory, or an archived segment that fails its checksums, neither the
// file nor the copy is overwritten, because either may be the only good one: the migration ends with an error, and the
// next migration determines which of the two is damaged, because it compares each memory with its
// hash. All other files are copied again and checked when the copy is verified.
//
// # A newer format
//
// There is one format so far. A newer program will open a store in an older format as it is, and
// write the newest format into a copy: a migration is the way to upgrade, and, until the old place
// is emptied, also the way back.
//
// A migration that was interrupted at any point, by a kill or a loss of power, continues when it is
// called again; files that exist already, by size and time, are not copied again, but compared. A
// read-only handle is not attached, and does not prevent the switch: within a second after it, its
// reads return a *errs.MovedError.
package migrate
