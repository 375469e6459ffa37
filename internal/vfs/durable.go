package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/varve-db/varve/errs"
)

// MkdirAll creates a folder and its missing parents, each durably. Existing folders are not synced again.
func MkdirAll(fsys FS, name string, perm fs.FileMode) error {
	st, err := fsys.Stat(name)
	switch {
	case err == nil && st.Mode.IsDir():
		return nil
	case err == nil && st.Mode&fs.ModeSymlink != 0:
		_, err := ReadRoot(fsys, name) // a link to a folder is accepted
		return err
	case err == nil:
		return &NotFolderError{Path: name, Mode: st.Mode}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	parent := filepath.Dir(name)
	if parent != name {
		if err := MkdirAll(fsys, parent, perm); err != nil {
			return err
		}
	}
	if err := fsys.Mkdir(name, perm); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return fsys.SyncDir(parent) // also if another writer was faster
}

// ReadFile reads a regular file of at most limit bytes.
func ReadFile(fsys FS, name string, limit int64) ([]byte, error) {
	return readFile(fsys, name, limit, func(f io.ReaderAt, size int64) ([]byte, error) {
		return readAt(f, make([]byte, size), 0)
	})
}

func readFile(fsys FS, name string, limit int64, read func(f io.ReaderAt, size int64) ([]byte, error)) ([]byte, error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode.IsRegular() {
		return nil, pathError("read", name, fmt.Errorf("%w: not a regular file", errs.ErrInvalid))
	}
	if st.Size > limit {
		return nil, pathError("read", name, fmt.Errorf("%w: the file has %d bytes, the limit is %d",
			errs.ErrTooLarge, st.Size, limit))
	}
	return read(f, st.Size)
}

// WriteDurable replaces a file atomically and durably. It first writes the data to the file tmp, and then renames tmp
// to name. If it fails, the file at name is either the old or the new one.
func WriteDurable(fsys FS, tmp, name string, data []byte, perm fs.FileMode) error {
	return WriteDurableBy(fsys, tmp, name, func(f io.WriterAt) error {
		_, err := f.WriteAt(data, 0)
		return err
	}, perm)
}

// WriteDurableBy does the same as WriteDurable; write writes the contents into the file.
func WriteDurableBy(fsys FS, tmp, name string, write func(f io.WriterAt) error, perm fs.FileMode) error {
	// Removed instead of truncated: what a crash left at tmp may be open or linked elsewhere.
	if err := fsys.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := fsys.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	if err = write(Streamed(f)); err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = fsys.Rename(tmp, name)
	}
	if err != nil {
		fsys.Remove(tmp) // if this fails, the next write to tmp removes it
		return err
	}
	return fsys.SyncDir(filepath.Dir(name))
}
