// Package crash is a file system in memory that records what is durable.
//
// A Disk is a machine: its disk and the page cache before it. Each process uses it through its own
// vfs.FS (Disk.Process); Kill ends a process, and Crash cuts the power: it returns the Disk that
// the next boot finds, and leaves the old Disk unchanged, so that the power can be cut at the same
// moment in many ways.
//
// # What is durable
//
// File content: sectors of 512 bytes. A write is visible at once and pending until Sync, Datasync
// or a Barrier. At a crash each sector independently becomes the durable version or any of its
// later versions: sectors are in no order, and a sector is never torn. Size and times of a file are
// pending too, as a prefix in time, independently. Datasync makes the size durable and not the
// modification time.
//
// Names: creating, renaming, exchanging, linking, removing are each one step over all names they
// touch, pending until SyncDir of one of the folders, or a Barrier. At a crash any subset survives
// that includes, for each step, the earlier ones on the same names. So syncing a file does not make
// its name durable, and a name may be durable while the content of the file is not; ext4, xfs and
// btrfs are less harsh in both respects, but POSIX allows both.
//
// A sector inside the surviving size with no surviving content is zero or, by pattern, content of a
// removed file (LoseDataOld).
//
// # Syncs that fail
//
// After a failed sync (FailSync) its data are in the cache, marked as clean, and not durable; no
// later sync makes them durable unless they are written again. DropCaches discards them. Linux
// behaves like this, and reports the error once; here it is not reported on other descriptors
// either.
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
