package docfile

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/vfs"
)

// The names of the folders in a store that this package owns.
const (
	tempFolder       = "tmp"
	parkedFolder     = "parked" // subfolder of tmp/
	quarantineFolder = QuarantineFolder
)

// QuarantineFolder is the name of the folder into which the store moves files that it must not lose and cannot use.
const QuarantineFolder = "quarantine"

// Layout has the path of the root of a store, and the modes with which its files are created.
type Layout struct {
	FS         vfs.FS
	Root       string      // path of the store's folder
	FileMode   fs.FileMode // 0 means 0600
	FolderMode fs.FileMode // 0 means 0700
}

func (l Layout) fileMode() fs.FileMode {
	if l.FileMode == 0 {
		return 0o600
	}
	return l.FileMode
}

func (l Layout) folderMode() fs.FileMode {
	if l.FolderMode == 0 {
		return 0o700
	}
	return l.FolderMode
}

func (l Layout) path(elem ...string) string {
	return filepath.Join(append([]string{l.Root}, elem...)...)
}

// rel returns a path in the form for messages and notes: relative to the store, with slashes.
func (l Layout) rel(path string) string {
	r, err := filepath.Rel(l.Root, path)
	if err != nil {
		return path
	}
	return filepath.ToSlash(r)
}

// makeFolder creates a folder and its missing parents below the root, durably. It refuses a symbolic link,
// since files written there would be outside of the store.
func (l Layout) makeFolder(elem ...string) error {
	for i := range elem {
		dir := l.path(elem[:i+1]...)
		err := l.checkFolder(dir)
		if err == nil {
			continue
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		made := l.FS.Mkdir(dir, l.folderMode())
		if made != nil && !errors.Is(made, fs.ErrExist) {
			return failure("create the folder", l.rel(dir), made)
		}
		if err := l.checkFolder(dir); err != nil {
			return err
		}
		if err := l.FS.SyncDir(filepath.Dir(dir)); err != nil {
			if made == nil {
				_ = l.FS.Remove(dir) // or the next caller would treat it as durable
			}
			return syncFailure(l.rel(filepath.Dir(dir)), err)
		}
	}
	return nil
}

func (l Layout) checkFolder(dir string) error {
	info, err := l.FS.Stat(dir)
	if err != nil {
		return failure("examine the folder", l.rel(dir), err)
	}
	if !info.Mode.IsDir() {
		return &vfs.NotFolderError{Path: dir, Mode: info.Mode}
	}
	return nil
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return "a file"
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	case m.IsDir():
		return "a folder"
	}
	return "a special file"
}

// checkName returns nil if name is a single plain path element, and an error otherwise.
func checkName(name string) error { return checkElement(name, "/\\\x00") }

// checkElement returns nil if name is a single element of a path without any of the refused characters, and an error
// otherwise.
func checkElement(name, refused string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, refused) {
		return &errs.FieldError{Field: "file name", Value: human.Quote(name),
			Err: errors.New("must be one element of a path")}
	}
	return nil
}

// failure wraps err with the action doing and the path of the file. If a sentinel error that callers test for
// describes err, the result matches that error too.
func failure(doing, path string, err error) error {
	var also error
	switch {
	case vfs.IsDiskFull(err):
		also = errs.ErrDiskFull
	case errors.Is(err, syscall.EROFS):
		also = errs.ErrReadOnly
	case vfs.IsPermission(err):
		also = errs.ErrPermission
	case vfs.IsUnopened(err):
		also = errs.ErrTooManyFiles
	}
	if also != nil && !errors.Is(err, also) {
		return fmt.Errorf("%s %s: %w: %w", doing, path, also, err)
	}
	return fmt.Errorf("%s %s: %w", doing, path, err)
}

// syncFailure does the same as failure, for an error of a sync, and adds errs.ErrSyncFailed. If opening the file
// for the sync failed, nothing was synced, and the system has not marked pages as written; then the error does not
// match errs.ErrSyncFailed.
func syncFailure(path string, err error) error {
	if vfs.IsUnopened(err) {
		return failure("open to sync", path, err)
	}
	return fmt.Errorf("%w: %w", errs.ErrSyncFailed, failure("sync", path, err))
}
