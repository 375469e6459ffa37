package vfs

import (
	"errors"
	"io/fs"
	"os"
)

// CreateNew creates a new file. If a file of that name exists, CreateNew removes the name instead of overwriting the
// file: a process may have the file open, or the file may have another name outside of the store.
func CreateNew(fsys FS, name string, perm fs.FileMode) (File, error) {
	const flag = os.O_RDWR | os.O_CREATE | os.O_EXCL
	f, err := fsys.OpenFile(name, flag, perm)
	if !errors.Is(err, fs.ErrExist) {
		return f, err
	}
	if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return fsys.OpenFile(name, flag, perm)
}
