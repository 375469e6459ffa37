// Package vfs is the lowest layer of the store: every file operation, every lock and every store
// into a page shared between processes is a call of FS. So the same code runs on the operating
// system (OS), under a recorder (vfs/trace), with injected errors (vfs/fault), on a file system
// that loses everything that was not synced (vfs/crash) and under a scheduler that switches, kills
// and cuts processes at any operation (vfs/sim).
//
// # What the implementations promise
//
//   - OpenFile opens regular files and nothing else: it follows no symbolic link in
//     the last element, neither waits for a FIFO nor opens a device or a folder
//     (*NotRegularError). Its descriptors do not survive exec.
//   - ReadDir enters folders and nothing else, through no link (*NotFolderError).
//     ReadRoot is for a folder that a user named.
//   - A caller never gets EINTR.
//   - What is made has the rights of its owner that it was made with, whatever the umask is.
//   - An open waits for a lease of another process at most as long as Patient says
//     (*errs.LockError).
//   - Sync and Datasync reach the medium, also on darwin (F_FULLFSYNC).
//   - RenameNew never replaces anything.
//   - A lock handle is one owner: two handles of one file exclude each other, in
//     one process as in two, and one handle serializes its own callers.
//
// # Borders
//
// A store's files say names: of memories, of other files, of folders. They are input, and so is every
// link in the folder. Only(fsys, literal, roots...) is the file system that the engine, repair,
// backup, restore and migrate have: all that is below a root is reached through no symbolic link, and
// what is below no root is refused (*OutsideError), whatever path was made. Roots are the store, the
// other folder of a backup, a restore or a migration, and the user's folder of keys. Below is the part
// about links, for one root more. Two folders are looked at besides: that where a backup is made has
// its own (copy.makeFolder), and the copy of a store that is being moved reads the note of the folder
// that it names (migrate.Residence).
//
// On Linux and darwin an operation works on a descriptor of the folder that a name is in, which was
// opened through no link: by openat2 with RESOLVE_NO_SYMLINKS, from the root on with RESOLVE_BENEATH
// where the root is reached through a link, and one folder at a time where there is no openat2 or a
// sandbox refuses it. So a folder that is exchanged with a link meanwhile leads nowhere. The
// descriptor is closed after each operation. That of the root is kept where Hold was called, as an open
// store does: whatever has the path of the root later, operations stay in the folder that was held, also
// where it was renamed, removed or covered by a mount. What is directly in a root costs no call more; an operation one
// folder deeper costs an open and a close in the place of a look. Stat of a file one folder deep follows the folder: it
// tells sizes and times, and nothing is done there. On Windows each folder is looked at before.
//
// # Locks
//
// A lock is a flock (LockFileEx on Windows). After every acquire the inode of the open file is
// compared with the one its path names; when they differ, or the path names nothing, the lock is
// released, the file is opened again (created when it is missing) and locked again. So after a lock
// file was unlinked, the next two acquires still use the same file. This does not help if a file is
// unlinked while its lock is held: the next process then locks a new file although the old owner
// still holds the lock. Lock files must never be unlinked.
//
// The flock itself is github.com/gofrs/flock's (lock_fresh.go): a handle that is opened for one
// acquire and closed by the unlock, so that its peculiarities have no effect (a second Lock on a
// held handle succeeds, TryRLock turns an exclusive lock into a shared one, a refused upgrade loses
// the lock, TryLockContext polls). It is opened without following a link or waiting for a FIFO, and
// what it opened must be a regular file.
//
// A lock for which KeepOpen was called has a bare descriptor instead, which stays open
// (lock_unix.go): append.lock and sync.lock, which every commit takes, also one that has
// begun when the process may open no more files. go test -bench Lock measures both.
//
// A caller that must wait starts a goroutine that blocks in flock, on a descriptor of its own, and
// waits for it or for ctx. flock cannot be cancelled: when ctx ends first the goroutine stays until
// it is granted the lock, and then passes it to the next caller of the handle in the same mode or
// releases it immediately. There is at most one such goroutine for each mode of a handle; one that
// remains after Close ends when its flock returns. While one remains, a TryLock may fail during the
// moment before the release.
//
// # The shared page
//
// 512 words of 8 bytes in the byte order of the machine, mapped MAP_SHARED and accessed with
// sync/atomic only. It is written completely when it is created, so that a later store cannot fail
// for lack of disk space. On a file system that copies on write (btrfs) a completely full disk can
// still refuse a page.
package vfs
