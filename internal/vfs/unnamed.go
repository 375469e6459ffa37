package vfs

import (
	"errors"
	"io/fs"
)

// Dir is a handle of a folder. It stays the handle of that folder after the folder is renamed, or another folder gets
// its path.
type Dir interface {
	// CreateUnnamed creates a file that has no name, on the file system of the folder, and opens it for reading and
	// writing. The system removes the file when it is closed without a name, also when its process is killed. It
	// returns errors.ErrUnsupported if the file system has no such files.
	CreateUnnamed(perm fs.FileMode) (File, error)
	// LinkUnnamed gives a file of CreateUnnamed, which must be open, a name in the folder. If the name exists, it fails
	// with fs.ErrExist. The name is as durable as that of Link: not before the folder is synced. It returns
	// errors.ErrUnsupported if the system cannot do this.
	LinkUnnamed(f File, name string) error
	// Stat describes the folder.
	Stat() (Info, error)
	Close() error
}

// DirOpener is an FS that has handles of folders.
type DirOpener interface {
	OpenDir(name string) (Dir, error)
}

// OpenDir opens a folder. It returns errors.ErrUnsupported if the file system has no handles of folders.
func OpenDir(fsys FS, name string) (Dir, error) {
	if o, ok := fsys.(DirOpener); ok {
		return o.OpenDir(name)
	}
	return nil, errors.ErrUnsupported
}
