// Package vfs is the floor of the store: every file operation, every lock and
// every store into a page shared between processes goes through FS, so that the
// same code runs on the operating system (OS), under a recorder (vfs/trace),
// with injected errors (vfs/fault), on a file system that forgets what was not
// synced (vfs/crash) and under a scheduler that switches, kills and cuts
// processes at any operation (vfs/sim).
//
// # What the implementations promise
//
//   - OpenFile opens regular files and nothing else: it follows no symbolic link in
//     the last element, neither waits for a FIFO nor opens a device or a folder
//     (*NotRegularError). Its descriptors do not survive exec.
//   - ReadDir enters folders and nothing else, through no link (*NotFolderError).
//     ReadRoot is for a folder that a user named.
//   - EINTR is never seen by a caller.
//   - Sync and Datasync reach the medium, also on darwin (F_FULLFSYNC).
//   - RenameNew never replaces anything.
//   - A lock handle is one owner: two handles of one file exclude each other, in
//     one process as in two, and one handle serializes its own callers.
//
// # Locks
//
// A lock is a flock (LockFileEx on Windows). After every acquire the inode of the open file
// is compared with the one its path names; when they differ, or the path names nothing, the lock is
// released, the file is opened again (created when it is missing) and locked again. So after
// somebody unlinked a lock file, the next two acquires still meet on one file. What this cannot
// mend is a file unlinked while its lock is held: the next process locks a new file beside the old
// owner. Nobody may unlink lock files.
//
// The flock itself is github.com/gofrs/flock's (lock_fresh.go): a handle that is opened for
// one acquire and closed by the unlock, so that its habits are never met (a second Lock on a
// held handle succeeds, TryRLock turns an exclusive lock into a shared one, a refused upgrade
// loses the lock, TryLockContext polls). It is opened without following a link or waiting for
// a FIFO, and what it opened must be a regular file.
//
// A lock for which KeepOpen was called has a bare descriptor instead, which stays open
// (lock_unix.go): append.lock and sync.lock, which every commit takes, also one that has
// begun when the process may open no more files. go test -bench Lock measures both.
//
// A caller that must wait starts a goroutine that blocks in flock, on a
// descriptor of its own, and waits for it or for ctx. flock cannot be called
// off: when ctx ends first the goroutine stays until it is granted the lock, and
// then hands it to the next caller of the handle in the same mode or lets it go
// at once. There is at most one such goroutine for each mode of a handle; one
// left behind by Close ends when its flock returns. While one is left behind a
// TryLock may fail for the moment it takes to let go.
//
// # The shared page
//
// 512 words of 8 bytes in the byte order of the machine, mapped MAP_SHARED and
// accessed with sync/atomic only. It is written out in full when it is made, so
// that a later store cannot fail for want of disk space. On a file system that
// copies on write (btrfs) a completely full disk can still refuse a page.
package vfs
