// Package crash implements a file system in memory that records what is durable.
//
// A Disk is a machine: its disk and the page cache. Each process uses it through its own vfs.FS (Disk.Process). Kill
// ends a process. Crash simulates a power failure: it returns the Disk that the next boot finds, and leaves the old
// Disk unchanged, so that the power can fail at the same moment in many ways.
//
// # What is durable
//
// File content: sectors of 512 bytes. A write is visible at once and pending until Sync, Datasync or a Barrier. At a
// crash each sector independently becomes the durable version or any of its later versions: there is no order between
// sectors, and a sector is never torn. The size and times of a file are pending too, and independently become those
// after any of the changes. Datasync makes the size durable but not the modification time.
//
// Unnamed files (vfs.Dir): such a file has no name in any durable state until its link is durable, which is a step as
// any link. Its content is pending as that of every file.
//
// Names: creating, renaming, exchanging, linking and removing are each one step over all names involved, pending until
// SyncDir of one of the folders, or a Barrier. At a crash any subset of steps survives that includes, for each step,
// the earlier ones on the same names. So syncing a file does not make its name durable, and a name may be durable while
// the content of the file is not. ext4, xfs and btrfs guarantee more in both respects, but POSIX allows both.
//
// A sector within the surviving size that has no surviving content is zero, or has content of a removed file if the
// pattern says so (LoseDataOld).
//
// # Syncs that fail
//
// After a failed sync (FailSync) the data are in the cache, marked as clean, and not durable; no later sync makes them
// durable unless they are written again. DropCaches discards them. Linux behaves like this and reports the error once;
// this package does not report it on other descriptors either.
//
// # Locks, leases, memory
//
// Locks belong to a handle and its process. A shared page is a file whose stores are pending writes of 8 bytes. A lease
// is granted if the descriptor is the only open one in any process, and makes an OpenFile wait. Mappings are snapshots.
//
// All operations run under one mutex, and their cost depends on what they change: pages of 4 KiB are shared between
// cache, durable state and crashed copies until they are written.
package crash
