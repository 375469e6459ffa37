// Package vfs is the lowest layer of the store: every file operation, every lock and every store into a page shared
// between processes is a call of FS. So the same code runs on the operating system (OS), under a recorder (vfs/trace),
// with injected errors (vfs/fault), on a file system that loses everything that was not synced (vfs/crash), and under a
// scheduler that switches, kills and crashes processes at any operation (vfs/sim).
//
// # Guarantees of the implementations
//
//   - OpenFile opens regular files only (*NotRegularError): it follows no symbolic link in the last element, does not
//     wait for a FIFO, and opens no device or folder. Its descriptors do not survive exec.
//   - ReadDir reads folders only, and follows no link (*NotFolderError). ReadRoot is for a folder that a user named.
//   - A caller never gets EINTR.
//   - The owner has the rights to a created file or folder that were requested, whatever the umask is.
//   - An open waits for a lease of another process at most as long as Patient says (*errs.LockError).
//   - Sync and Datasync reach the medium, also on darwin (F_FULLFSYNC).
//   - RenameNew never replaces anything.
//   - A lock handle is one owner: two handles of one file exclude each other, within a process as between processes,
//     and a handle serializes its own callers.
//
// # Boundaries
//
// A store's files contain names: of memories, of other files, of folders. These names are untrusted input, and so is
// every link in the folder. Only(fsys, literal, roots...) is the file system that the engine, repair, backup, restore
// and migrate use: everything below a root is reached without following symbolic links, and paths that are below no
// root are refused (*OutsideError), however they were built. The roots are the store, the other folder of a backup, a
// restore or a migration, and the user's folder of keys. The function Below adds one more root, with the same rule for
// links, and refuses no other paths. Two more folders are accessed: the folder in which a backup is made has its own
// file system (copy.makeFolder), and the copy of a store that is being moved reads the note in the folder that it names
// (migrate.Residence).
//
// On Linux and darwin an operation works on a descriptor of the parent folder, opened without following links: by
// openat2 with RESOLVE_NO_SYMLINKS; with RESOLVE_BENEATH from the root on, if the root is reached through a link; and
// folder by folder if openat2 is missing or refused by a sandbox. So a folder that is exchanged with a link meanwhile
// has no effect. The descriptor is closed after each operation. The root's descriptor is kept after Hold, as in an open
// store: whatever the path of the root leads to later, operations stay in the held folder, even if it is renamed,
// removed or covered by a mount. An operation directly in a root needs no additional call; one in a folder below needs
// an open and a close. Stat of a file one folder below the root follows a linked folder: it returns sizes and times,
// and changes nothing there. On Windows each folder is checked before the operation.
//
// # Locks
//
// A lock is a flock (LockFileEx on Windows). After every acquire the inode of the open file is compared with the one
// that its path names. If they differ, or the path names nothing, the lock is released, and the file is opened again
// (created if it is missing) and locked again. So after a lock file was unlinked, the next two acquires still use the
// same file. This does not help if a file is unlinked while its lock is held: the next process then locks a new file
// although the old owner still holds the lock. Lock files must never be unlinked.
//
// The flock itself is that of github.com/gofrs/flock (lock_fresh.go), with a handle that is opened for one acquire and
// closed by the unlock, so that the library's peculiarities have no effect (a second Lock on a held handle succeeds,
// TryRLock turns an exclusive lock into a shared one, a refused upgrade loses the lock, TryLockContext polls). It is
// opened without following a link or waiting for a FIFO, and must be a regular file.
//
// A lock for which KeepOpen was called has a bare descriptor instead, which stays open (lock_unix.go): append.lock and
// sync.lock, which every commit takes, even a commit that began when the process could open no more files. go test
// -bench Lock measures both.
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
