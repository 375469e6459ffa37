// Package dir keeps a copy of a store's log in a folder, usually on another disk or a mounted network share. Remote
// implements remote.Remote.
//
// # The folder
//
//	varve-remote.json           format and ID of the remote; the folder is a remote if it has this file
//	log/<folder>/<number>       entries: anchors and pieces; names of 16 digits, 1,024 in a folder of 13 digits
//	floors/<number>              the number of the oldest entry that is kept is the highest of these names
//	snapshots/<id>.body         bytes of a snapshot
//	snapshots/<id>.meta         its description; the snapshot exists if it has this file
//	machines/<id>.json          the machines that use the remote
//	tmp/<random>                files that are being written
//
// The disk of the folder can be replaced while a process runs. Every call therefore begins with a look at
// varve-remote.json: without it, or with the ID of another remote, the error matches remote.ErrNoRemote, and nothing is
// read or written.
//
// # An entry
//
// Numbers are little-endian.
//
//	  0  8 bytes "VARVEPCE"
//	  8  uint32 version 1, uint32 kind: 1 anchor, 2 piece
//	 16  uint64 number of the entry
//	 24  uint64 epoch
//	 32  16 bytes ID of the remote
//	 48  16 bytes UUID of the store, uint64 size of its segments, uint64 epoch of its own log
//	 80  uint64 position, uint64 chain hash: the mark where the piece begins
//	 96  uint64 position, uint64 chain hash: the mark where it ends; of an anchor both are the same
//	112  16 bytes machine, 16 bytes request
//	144  uint32 program format, uint32 0
//	152  int64 time, Unix microseconds
//	160  uint64 number of bytes of the piece
//	168  32 bytes SHA-256 of these bytes
//	200  32 bytes SHA-256 at the end of the head of the entry before, zeros in the first entry
//	232  32 bytes SHA-256 of everything before
//	264  the bytes of the piece
//
// A later version keeps the place of the version and of the checksum of the head, so that a flipped bit never reads as
// a newer format.
//
// # Who decides
//
// There is no file that names the newest entry: it is the entry with the highest number. A writer that has read entry
// n writes its own to a temporary file, syncs it, and renames it to the name n+1, with a rename that fails if the name
// exists (RENAME_NOREPLACE, or link and unlink where the file system lacks that). So of all writers that follow entry n
// exactly one succeeds, and its rename never replaces a file. No lock is held: a writer that is stopped for a month and
// then continues blocks no other writer and overwrites nothing.
//
// One case remains: while a writer that has read entry n sleeps, entries up to far beyond n+1 are added and the oldest
// are pruned, n+1 among them. Its name is free again, and the rename of the sleeper succeeds. Therefore a prune first
// creates a file in floors/ whose name is the oldest number that stays, durably, and removes entries after that; and a
// writer reads floors/ after its rename. If n+1 was ever taken and is free again, it was removed after the floor above
// it was created, hence before the rename, hence the writer finds the floor, removes its file and is refused. If the
// writer is killed in between, its file is below the floor, where no reader looks and the next prune removes it.
// Files in floors/ are created and removed, never replaced: a slower prune with a lower floor does not lower it.
//
// # Durability
//
// An entry gets its name after its content was synced; a name in log/ never leads to a partial entry. Append returns
// after the folder with the name was synced. An entry that another writer has renamed but not yet synced is visible
// and may disappear in a power cut, so Head syncs the folder of the entry that it returns: no caller builds on an
// entry, or drops its own copy of it, before it is durable. Entries are durable in their order, because every writer
// calls Head first.
//
// # A suitable file system
//
// Create refuses a folder where two writers can both win the rename, where the loser's bytes appear, or where files
// and folders cannot be synced; probe.go has the test. It detects a file system without exclusive names; it does not
// detect a server that acknowledges syncs it does not execute.
//
// # Assumptions
//
// All machines that use the folder see a completed rename, and a completed creation of a floor, at once (a local file
// system; NFS, where both are operations of the server). Because only one machine sends at a time, a listing that lags
// on another machine delays a clone, and makes an Append of that machine fail; it adds no second entry n+1. A folder
// with 1,024 entries is listed quickly.
package dir
