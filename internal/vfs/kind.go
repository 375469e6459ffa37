package vfs

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/varve-db/varve/errs"
)

// Errors for a path at which there is another kind of file than the store creates there.
var (
	ErrNotRegular = errors.New("not a regular file")
	ErrNotFolder  = errors.New("not a folder")
)

// NotRegularError reports that a file was not opened because it is not regular: it is a folder, a symbolic link, a
// FIFO, a socket or a device. It does not mean damage: no data was read. It matches ErrNotRegular, errs.ErrInvalid, and
// the error that the system returns: EISDIR for a folder, ELOOP for a link, ENXIO for others.
type NotRegularError struct {
	Path string
	Mode fs.FileMode // type and permissions of the file
}

func (e *NotRegularError) Error() string {
	return "open " + e.Path + ": " + KindOf(e.Mode) + ", not a regular file"
}

func (e *NotRegularError) Unwrap() []error {
	errno := syscall.ENXIO
	switch {
	case e.Mode.IsDir():
		errno = syscall.EISDIR
	case e.Mode&fs.ModeSymlink != 0:
		errno = syscall.ELOOP
	}
	return []error{ErrNotRegular, errs.ErrInvalid, errno}
}

// NotFolderError reports that a path was not used as a folder because it is not one. Symbolic links are not followed,
// wherever they lead. The error matches ErrNotFolder, errs.ErrInvalid and ENOTDIR.
type NotFolderError struct {
	Path string
	Mode fs.FileMode
}

func (e *NotFolderError) Error() string {
	if e.Mode&fs.ModeSymlink != 0 {
		return e.Path + " is a symbolic link; Varve does not follow links inside a store; remove it"
	}
	return e.Path + " is " + KindOf(e.Mode) + ", not a folder; move it away"
}

func (e *NotFolderError) Unwrap() []error {
	return []error{ErrNotFolder, errs.ErrInvalid, syscall.ENOTDIR}
}

// KindOf returns a description of the file type in a mode.
func KindOf(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return "a regular file"
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	case m.IsDir():
		return "a folder"
	case m&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "a special file"
}

// ReadRoot does the same as ReadDir for a folder that a user has named: the root of a store or of a backup, which may
// be reached through a link.
func ReadRoot(fsys FS, name string) ([]string, error) { return fsys.ReadDir(throughLink(name)) }

// throughLink returns a path that follows name if name is a link to a folder: name with "/." appended. Do not use
// filepath.Join for this, because it removes the dot.
func throughLink(name string) string { return name + "/." }

// lostAndFound is the name of the folder that mkfs creates in the root of a file system for use by fsck.
const lostAndFound = "lost+found"

// Contents returns the names in a folder as ReadRoot does, without lost+found at a mount point: a new volume counts as
// empty.
func Contents(fsys FS, name string) ([]string, error) {
	names, err := ReadRoot(fsys, name)
	return WithoutLost(fsys, name, names), err
}

// WithoutLost returns the given names of entries of a folder. If the folder is a mount point, it omits lost+found.
func WithoutLost(fsys FS, name string, names []string) []string {
	if at := slices.Index(names, lostAndFound); at >= 0 && IsMount(fsys, name) {
		if info, serr := fsys.Stat(filepath.Join(name, lostAndFound)); serr == nil && info.Mode.IsDir() {
			names = slices.Delete(names, at, at+1)
		}
	}
	return names
}
