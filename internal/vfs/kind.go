package vfs

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/varve-db/varve/errs"
)

// What is at a path is of another kind than the store puts there.
var (
	ErrNotRegular = errors.New("not a regular file")
	ErrNotFolder  = errors.New("not a folder")
)

// NotRegularError refuses to open what is no regular file: a folder, a symbolic link, a
// FIFO, a socket, a device. It says nothing about damage: the bytes that belong there were
// not read. It matches ErrNotRegular, errs.ErrInvalid, and what the system would say:
// EISDIR of a folder, ELOOP of a link, ENXIO of the others.
type NotRegularError struct {
	Path string
	Mode fs.FileMode // type bits and permissions of what is there
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

// NotFolderError refuses to enter what is no folder. A symbolic link is not followed,
// wherever it leads. It matches ErrNotFolder, errs.ErrInvalid and ENOTDIR.
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

// KindOf says in words what a mode describes.
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

// ReadRoot is ReadDir for the folder a user named: the root of a store or of a backup,
// which may be reached through a link.
func ReadRoot(fsys FS, name string) ([]string, error) { return fsys.ReadDir(throughLink(name)) }

// throughLink names what a link to a folder leads to. filepath.Join would take it off again.
func throughLink(name string) string { return name + "/." }

// lostAndFound is the folder that mkfs makes in the root of a file system, for what fsck finds.
const lostAndFound = "lost+found"

// Contents is ReadRoot without lost+found where a file system is mounted: a new volume is empty.
func Contents(fsys FS, name string) ([]string, error) {
	names, err := ReadRoot(fsys, name)
	return WithoutLost(fsys, name, names), err
}

// WithoutLost returns the names in a folder without lost+found, where that is what mkfs made.
func WithoutLost(fsys FS, name string, names []string) []string {
	if at := slices.Index(names, lostAndFound); at >= 0 && IsMount(fsys, name) {
		if info, serr := fsys.Stat(filepath.Join(name, lostAndFound)); serr == nil && info.Mode.IsDir() {
			names = slices.Delete(names, at, at+1)
		}
	}
	return names
}
