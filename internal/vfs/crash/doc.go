// Package crash is a file system in memory that knows what is durable.
//
// A Disk is a machine: its disk and the page cache before it. Processes work on
// it through a vfs.FS each (Disk.Process); Kill ends one of them, and Crash cuts
// the power: it makes the Disk that the next boot finds, and leaves the old one
// as it was, so that one moment can be cut in many ways.
//
// # What is durable
//
// File content: sectors of 512 bytes. A write is visible at once and pending
// until Sync, Datasync or a Barrier. At a crash each sector on its own ends as
// the durable version or as any of the versions it had since: no order holds
// between sectors, and a sector is never torn. Size and times of a file are
// pending too, as a prefix in time, on their own. Datasync makes the size
// durable and not the modification time.
//
// Names: creating, renaming, exchanging, linking, removing are each one step
// over all names they touch, pending until SyncDir of one of the folders, or a
// Barrier. At a crash any subset survives that keeps, for each step, the
// earlier ones on the same names. So syncing a file does not make its name
// durable, and a name may be durable while what the file holds is not; both are
// harsher than ext4, xfs and btrfs are, and POSIX allows them.
//
// A sector inside the surviving size with no surviving content is zero or, by
// pattern, what some removed file held (LoseDataOld).
//
// # Syncs that fail
//
// After a failed sync (FailSync) the data that it was about is in the cache,
// looks clean, and is not durable; no later sync makes it durable unless it is
// written again. DropCaches forgets it. Linux does this, and the error is
// reported once; here it is not reported on other descriptors either.
//
// # Locks, leases, memory
//
// Locks belong to a handle and its process; a shared page is a file whose
// stores are pending writes of 8 bytes; a lease is granted when the descriptor
// is the only one open in any process, and makes an OpenFile wait. Mappings are
// snapshots.
//
// Everything runs under one mutex and costs what it changes: pages of 4 KiB are
// shared between cache, durable state and crashed copies until written.
package crash
