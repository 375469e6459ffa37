package vfs

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/varve-db/varve/errs"
)

// NoInodeError is a full disk of which bytes are free: the file system can hold no other file. It is
// found out when a name cannot be made; soon after, what was begun may be removed and some are free.
type NoInodeError struct{ Err error }

func (e *NoInodeError) Error() string { return e.Err.Error() + ", no inode is free (df -i shows them)" }
func (e *NoInodeError) Unwrap() error { return e.Err }

// unmade is the error of an operation that was to make a name.
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

// Full explains the error of a disk that is full: how much of it, at a path, is free.
func Full(fsys FS, path string, err error) *errs.DiskFullError {
	none := (*NoInodeError)(nil)
	full := &errs.DiskFullError{Path: path, Free: -1, Need: -1, Err: err, Inodes: errors.As(err, &none)}
	for at := path; ; at = filepath.Dir(at) { // it may be that the path itself could not be made
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
