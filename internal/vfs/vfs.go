package vfs

import (
	"context"
	"io"
	"io/fs"
	"time"
)

// FS is a file system as the store uses it. Names are paths of the system. Errors match fs.ErrNotExist, fs.ErrExist,
// fs.ErrPermission and the syscall.Errno values with errors.Is.
type FS interface {
	// OpenFile opens or creates a regular file. If there is a symbolic link, a folder, a FIFO or a device at the name,
	// it returns a *NotRegularError and does not open it.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	Mkdir(name string, perm fs.FileMode) error
	Remove(name string) error
	// Rename renames a file, and replaces an existing file at new.
	Rename(old, new string) error
	// RenameNew renames a file, and fails with fs.ErrExist if new exists.
	RenameNew(old, new string) error
	// Exchange swaps two names atomically. It returns errors.ErrUnsupported if the system cannot.
	Exchange(a, b string) error
	// Link gives a file a second name. It returns errors.ErrUnsupported if the system cannot.
	Link(old, new string) error
	// Stat describes a file. It does not follow a symbolic link in the last element.
	Stat(name string) (Info, error)
	// ReadDir returns the names in a folder, in any order, without "." and "..". If name is not a folder, or is a link
	// to one, it returns a *NotFolderError. See ReadRoot.
	ReadDir(name string) ([]string, error)
	// SyncDir makes the entries of a folder durable. It accepts a link to a folder.
	SyncDir(name string) error

	// OpenLock opens a lock file, which it creates if it is missing. Like OpenShared it refuses the kinds of files that
	// OpenFile refuses. Each handle is an owner: two handles in one process exclude each other.
	OpenLock(name string, perm fs.FileMode) (Lock, error)
	// OpenShared maps a page of words that all processes share. If create is true, it writes the page completely, all
	// zero; otherwise a missing or short file is an error.
	OpenShared(name string, create bool, perm fs.FileMode) (Shared, error)
	// OpenBarrier opens a descriptor whose Sync makes everything durable that was written to the file system since it
	// was opened. It returns errors.ErrUnsupported if the system cannot be relied on to do so.
	OpenBarrier(name string) (Barrier, error)

	// Volume describes the file system that a folder is on.
	Volume(name string) (Volume, error)
	// Host identifies this process and this boot of the machine.
	Host() Host
}

// File is an open file. All methods may be called concurrently.
type File interface {
	io.ReaderAt
	io.WriterAt
	Truncate(size int64) error
	// Sync makes data and metadata durable.
	Sync() error
	// Datasync makes the data durable, and the metadata needed to read it back.
	Datasync() error
	Stat() (Info, error)
	// SetMtime sets the modification time, in the full precision of the system.
	SetMtime(t time.Time) error
	// SetMode sets the permission bits. It does nothing on systems that have no such bits.
	SetMode(perm fs.FileMode) error
	// Lease requests a lease, which is granted if no other process has the file open. While it is held (until Unlease
	// or Close), opens of the file wait. The file must have been opened by this process for reading or writing, and
	// only once. It returns errors.ErrUnsupported if there are no leases.
	Lease() (granted bool, err error)
	Unlease() error
	// Map maps the whole current file for reading.
	Map() (Mapping, error)
	Name() string
	Close() error
}

// Mapping is a file mapped into memory.
type Mapping interface {
	// Bytes returns the contents, valid until Close. Reading past the end of a file that another program cut short
	// faults: use vfs.Guard.
	Bytes() []byte
	Close() error
}

// Info describes a file.
type Info struct {
	Size  int64
	Mtime time.Time
	Mode  fs.FileMode // type and permission bits
	Ino   uint64
	Dev   uint64
	Nlink uint64
	UID   uint32
	GID   uint32
}

// Mode is the mode in which a lock is held.
type Mode int

// The modes of a lock.
const (
	ModeShared Mode = iota // several owners at once
	ModeExclusive
)

// Lock is an advisory lock between owners, in one process or in several. The mode of a lock that is held cannot be
// changed: call Unlock before locking in another mode.
type Lock interface {
	// Lock waits until the lock is acquired or ctx ends (then it returns ctx.Err()). If the lock file is replaced
	// meanwhile, it is opened again.
	Lock(ctx context.Context, mode Mode) error
	TryLock(mode Mode) (bool, error)
	Unlock() error
	Close() error
}

// KeepOpen makes a lock keep its file open from now on, if the file system supports that. The lock must not be held at
// the time of the call. KeepOpen is for locks that are taken so often that opening the file each time would be slow,
// and for locks that must be taken even when the process cannot open more files.
func KeepOpen(l Lock) error {
	if k, ok := l.(interface{ KeepOpen() error }); ok {
		return k.KeepOpen()
	}
	return nil
}

// Words is the number of 8-byte words in a shared page.
const Words = 512

// Shared is a page of words that all processes map. Words are read and written atomically; all processes see the stores
// in the order in which they were made.
type Shared interface {
	Load(word int) uint64
	Store(word int, v uint64)
	CompareAndSwap(word int, old, new uint64) bool
	Close() error
}

// Barrier makes writes durable: Sync makes everything durable that was written to the file system since the barrier was
// opened.
type Barrier interface {
	Sync() error
	Close() error
}

// Volume is a file system.
type Volume struct {
	Type  string // "ext4", "xfs", "btrfs", "tmpfs", "nfs", …, "unknown"
	Free  int64  // bytes that this user may still write
	Total int64
	// Files is the number of files that the volume may hold (its inodes), 0 if the number is not reported or not fixed.
	// FreeFiles is how many more files can be created.
	Files, FreeFiles int64
	// Coherent reports whether locks and shared mappings are known to work between processes.
	Coherent bool
	ReadOnly bool
}

// NoFile reports whether no further file can be created on the volume although space is free, because it has no free
// inodes.
func (v *Volume) NoFile() bool { return v.Files > 0 && v.FreeFiles == 0 && v.Free > 0 }

// Host identifies a process on a machine.
type Host struct {
	Boot         [2]uint64 // differs after each boot of the kernel; never zero
	PID          int
	Command      string
	Name         string
	PIDNamespace string
	Birth        uint64 // distinguishes this process from others with the same number; 0 if unknown. See LifeOf
}

// Glancer is an FS that can read a small regular file in one call, into buf, which is enlarged if necessary. For a file
// that is not regular, or is larger than limit, it returns only the Info.
type Glancer interface {
	Glance(name string, buf []byte, limit int64) ([]byte, Info, error)
}
