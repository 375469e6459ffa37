package vfs

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/varve-db/varve/errs"
)

// NoInodeError reports that a disk has free space but no free inodes. It is returned when a file or folder cannot be
// created. Some inodes may be free again later, when other files have been removed.
type NoInodeError struct{ Err error }

func (e *NoInodeError) Error() string { return e.Err.Error() + ", no inode is free (df -i shows them)" }
func (e *NoInodeError) Unwrap() error { return e.Err }

// unmade returns the error of an operation that failed to create a file or folder. If the disk has no free inode, the
// error includes a *NoInodeError.
func unmade(name string, err error) error {
	if err == nil || !IsDiskFull(err) {
		return err
	}
	if v, verr := volume(filepath.Dir(name)); verr != nil || !v.NoFile() {
		return err
	}
	if pe, ok := err.(*fs.PathError); ok {
		return &fs.PathError{Op: pe.Op, Path: pe.Path, Err: &NoInodeError{pe.Err}}
	}
	return &NoInodeError{err}
}

// Full returns an error that describes a full disk, with the free space at a path. err is the error of the operation.
func Full(fsys FS, path string, err error) *errs.DiskFullError {
	none := (*NoInodeError)(nil)
	full := &errs.DiskFullError{Path: path, Free: -1, Need: -1, Err: err, Inodes: errors.As(err, &none)}
	for at := path; ; at = filepath.Dir(at) { // the path itself may not exist
		v, verr := fsys.Volume(at)
		if verr == nil {
			full.Free = v.Free
			full.Inodes = full.Inodes || v.NoFile()
			return full
		}
		if at == filepath.Dir(at) || !errors.Is(verr, fs.ErrNotExist) {
			return full
		}
	}
}
