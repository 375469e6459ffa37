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
//	         opened and verified; then the note in the old place makes it the store
//	remove   the new place is verified once more; the old one keeps nothing but the note
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
// the switch has happened, and whoever opens it first removes the file.
//
// # The note: moved.json, in the old place
//
//	{"varve_moved":1,"id":"<uuid>","store":"<uuid>","to":"/abs/new","when":"<time>"}
//
// Its rename is the switch: at every moment before the old place is the store,
// at every moment after it the new one is. Opening the old place is a
// *errs.MovedError. Whoever wants the old place back as it was, while nobody has
// written in the new one, removes the new place and then the note.
//
// A migration that ends anywhere, by a kill or a loss of power, goes on when it is
// called again; what is there already, by size and time, is not copied a
// second time, but compared. A read-only handle attaches to nothing: one that
// is open during the switch goes on reading what the old place holds.
package repair
