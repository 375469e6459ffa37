package vfs

import (
	"context"
	"io"
	"io/fs"
	"time"
)

// FS is a file system as the store sees it. Names are paths of the system.
// Errors match fs.ErrNotExist, fs.ErrExist, fs.ErrPermission and the
// syscall.Errno values with errors.Is.
type FS interface {
	// OpenFile opens or creates a regular file. Anything else in its place, a symbolic
	// link, a folder, a FIFO, a device, is a *NotRegularError, and is not opened.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	Mkdir(name string, perm fs.FileMode) error
	Remove(name string) error
	// Rename replaces what stands at new.
	Rename(old, new string) error
	// RenameNew fails with fs.ErrExist when something stands at new.
	RenameNew(old, new string) error
	// Exchange swaps two names in one step. errors.ErrUnsupported where the system cannot.
	Exchange(a, b string) error
	// Link gives a file a second name. errors.ErrUnsupported where the system cannot.
	Link(old, new string) error
	// Stat does not follow a symbolic link in the last element.
	Stat(name string) (Info, error)
	// ReadDir yields the names in a folder, in any order, without "." and "..". Anything
	// else in its place, also a link to a folder, is a *NotFolderError. See ReadRoot.
	ReadDir(name string) ([]string, error)
	// SyncDir makes the entries of a folder durable, also through a link to it.
	SyncDir(name string) error

	// OpenLock opens a lock file, created when it is missing; what OpenFile refuses is
	// refused here and by OpenShared. One handle is one
	// owner: two handles in one process exclude each other.
	OpenLock(name string, perm fs.FileMode) (Lock, error)
	// OpenShared maps a page of words that all processes share. Without create a missing or short
	// file is an error; with it the page is recreated, all zero, written out in full.
	OpenShared(name string, create bool, perm fs.FileMode) (Shared, error)
	// OpenBarrier opens a descriptor on which Sync makes everything durable that
	// was written to the file system since it was opened. errors.ErrUnsupported
	// where that cannot be trusted.
	OpenBarrier(name string) (Barrier, error)

	// Volume says what file system a folder lies on.
	Volume(name string) (Volume, error)
	// Host identifies this process and this boot of the machine.
	Host() Host
}

// File is an open file. All methods may be called from several goroutines.
type File interface {
	io.ReaderAt
	io.WriterAt
	Truncate(size int64) error
	// Sync makes data and metadata durable.
	Sync() error
	// Datasync makes the data durable and what is needed to read it back.
	Datasync() error
	Stat() (Info, error)
	// SetMtime sets the modification time, in full precision of the system.
	SetMtime(t time.Time) error
	// Lease reports whether nobody else has the file open. While it is granted (until Unlease or
	// Close) opening the file waits. The file must have been opened by us for reading or writing,
	// and by us only once. errors.ErrUnsupported where there are no leases.
	Lease() (granted bool, err error)
	Unlease() error
	// Map maps the whole file for reading as it is now.
	Map() (Mapping, error)
	Name() string
	Close() error
}

// Mapping is a file mapped into memory.
type Mapping interface {
	// Bytes is valid until Close. Reading behind the end of a file that another program cut short faults:
	// wrap reads with vfs.Guard.
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

// Mode is how a lock is held.
type Mode int

// The modes of a lock.
const (
	ModeShared Mode = iota // several owners at once
	ModeExclusive
)

// Lock is an advisory lock between owners, in one process or in several.
// A lock is never converted: Unlock comes before another mode.
type Lock interface {
	// Lock waits until the lock is had or ctx ends (then it returns ctx.Err()). A lock file that
	// was replaced meanwhile is opened again.
	Lock(ctx context.Context, mode Mode) error
	TryLock(mode Mode) (bool, error)
	Unlock() error
	Close() error
}

// KeepOpen has a lock that is not held keep its file open from here on, where the file system
// tells the two apart: for locks that are taken so often that opening the file would be felt,
// or that must be had when no more files may be opened.
func KeepOpen(l Lock) error {
	if k, ok := l.(interface{ KeepOpen() error }); ok {
		return k.KeepOpen()
	}
	return nil
}

// Words is how many words of 8 bytes a shared page has.
const Words = 512

// Shared is a page of words that all processes map. Each word is read and
// written in one step; every store is seen by everybody in the order made.
type Shared interface {
	Load(word int) uint64
	Store(word int, v uint64)
	CompareAndSwap(word int, old, new uint64) bool
	Close() error
}

// Barrier makes everything durable that was written since it was opened.
type Barrier interface {
	Sync() error
	Close() error
}

// Volume is a file system.
type Volume struct {
	Type  string // "ext4", "xfs", "btrfs", "tmpfs", "nfs", …, "unknown"
	Free  int64  // bytes that we may still write
	Total int64
	// Files is how many files the volume may hold (its inodes), 0 where it does not say or has no
	// fixed number; FreeFiles how many of them are free.
	Files, FreeFiles int64
	// Coherent reports whether locks and shared mappings are known to work between processes.
	Coherent bool
	ReadOnly bool
}

// NoFile reports whether another file cannot be made though bytes are free.
func (v *Volume) NoFile() bool { return v.Files > 0 && v.FreeFiles == 0 && v.Free > 0 }

// Host identifies a process on a machine.
type Host struct {
	Boot         [2]uint64 // another one after each boot of the kernel, never zero
	PID          int
	Command      string
	Name         string
	PIDNamespace string
	Birth        uint64 // tells this process from others that have its number; 0 where that cannot be told. See LifeOf
}

// Glancer is an FS that reads what a small regular file holds, once, into buf, grown
// where it is too small. Of anything else, or above limit, there is only the Info.
type Glancer interface {
	Glance(name string, buf []byte, limit int64) ([]byte, Info, error)
}
