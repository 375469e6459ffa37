// Package migrate moves a store to another folder, and says of a folder whether its store lives
// there.
//
// # Migration
//
// A migration moves a store to another folder, on another disk or file system if
// need be. A moved store is the same store: same UUID, same versions, same history,
// so that a condition that a host holds still holds. (A restored one is another.)
// So there must never be two of it, and the copy is no store until the switch.
//
//	copy     every memory, byte for byte and with its time, while others go on using the store
//	catch up what the log says was written meanwhile, until little is left
//	compare  each memory of the store with its copy
//	switch   nobody else has the store open: the rest of the folder is copied (index,
//	         log, archive, backups, quarantine), every byte of it is compared, the copy is
//	         opened and verified; undo manifests are told of their new folder; then the
//	         note in the old place makes it the store
//	remove   the new place is verified once more; of the old one every file goes whose bytes
//	         were copied, or are in the new place now; what else somebody has put there
//	         since, whatever time it bears, stays and is named
//
// What others have to wait for is the switch; what was copied before need not be
// copied then.
//
// # The state: migrate.json, in the new place
//
//	{"varve_migration":1,        format
//	 "id":"<uuid>",              of this migration
//	 "store":"<uuid>",           whose copy this is
//	 "from":"/abs/old",          where that store is
//	 "began":"<time>",
//	 "state":"copying",          or "ready": a whole copy, which the note may make the store
//	 "lsn":<LSN>,                up to where it has the memories, as far as that is durable
//	 "lost":true}                a sync failed: what looks written may not be; all of it is copied again
//
// It is the first file of the new place, and removed last. A folder that has it
// is no store, unless the state is "ready" and the note in the old place has its id: then
// the switch has happened, and the first process that opens it removes the file.
//
// # The note: moved.json, in the old place
//
//	{"varve_moved":1,"id":"<uuid>","store":"<uuid>","to":"/abs/new","when":"<time>"}
//
// Its rename is the switch: at every moment before the old place is the store,
// at every moment after it the new one is. Opening the old place is a
// *errs.MovedError. It is written a second time, to wal/moved.json, which git ignores in
// every store, also in one whose .gitignore an older program wrote or a checkout has put
// back; the first one is added to that file. Either counts. To have the old place
// back as it was, while nobody has written in the new one, remove the new place
// and then both notes.
//
// # What was moved: moved.json.files, in the old place
//
//	{"varve_moved_files":1,"id":"<uuid>"}⏎     of which migration
//	8 bytes a file, little-endian              xxhash64 of its name in the store, NUL, and its bytes
//	8 bytes                                    xxhash64 of everything before
//
// It is written just before the note, of what was compared then, and goes last. Where it
// is missing (there was no room for it) only what the new place still has goes.
//
// # Rot
//
// A file and its copy of one size and time that differ: one of them has rotted. Of a
// memory, or a segment's copy in the archive that fails its sums, neither is written over, for
// the copy may be the only good one: the migration ends with an error, and the next
// one finds out which it was, for it reads each memory against its hash. All else
// is copied again and judged when the copy is verified.
//
// # A newer format
//
// There is one format so far. A newer program will open a store of an older one as it
// is, and write the newest format where it copies to: a migration is the way to upgrade,
// and until the old place is emptied the way back.
//
// A migration that ends anywhere, by a kill or a loss of power, goes on when it is
// called again; what is there already, by size and time, is not copied a
// second time, but compared. A read-only handle attaches to nothing, and keeps
// nobody from switching: within a second of it what it reads is a *errs.MovedError.
package migrate
