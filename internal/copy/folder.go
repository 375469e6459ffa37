package copy

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
)

// newFolder is a folder that is being made under another name, and appears under
// its own only when it is whole: what a killed process leaves is never taken for
// it, and is cleared away by the next one.
type newFolder struct {
	fs      vfs.FS
	dir     string // its name in the end
	part    string // its name until then
	lock    vfs.Lock
	barrier vfs.Barrier // nil: every file is synced
	mode    fs.FileMode
	folder  fs.FileMode
}

// makeFolder begins one. dir must not be there, or be empty.
func makeFolder(fsys vfs.FS, dir string, file, folder fs.FileMode) (*newFolder, error) {
	dir = filepath.Clean(dir)
	names, err := vfs.ReadRoot(vfs.Below(fsys, dir), dir)
	switch {
	case err == nil && len(names) > 0:
		return nil, fmt.Errorf("%s is not empty: %w: name a new folder", dir, errs.ErrInvalid)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("looking at %s: %w", dir, err)
	}
	// What is beside it may be a stranger's: also the name in use until then leads nowhere else.
	fsys = vfs.Below(fsys, filepath.Dir(dir))
	n := &newFolder{fs: fsys, dir: dir, part: dir + ".partial", mode: file, folder: folder}
	if err := vfs.MkdirAll(fsys, n.part, folder); err != nil {
		return nil, fmt.Errorf("making %s: %w", n.part, err)
	}
	// A link there, which somebody made, would have another folder cleared.
	if info, err := fsys.Stat(n.part); err != nil || !info.Mode.IsDir() {
		return nil, fmt.Errorf("%s is not a folder (%s): %w: take it away, or name another folder", n.part, info.Mode, errors.Join(errs.ErrInvalid, err))
	}
	// Beside the folder, which could not be renamed everywhere with an open file in it.
	if n.lock, err = fsys.OpenLock(n.part+".lock", file); err != nil {
		return nil, fmt.Errorf("locking %s: %w", n.part, err)
	}
	ok, err := n.lock.TryLock(vfs.ModeExclusive)
	if err == nil && !ok {
		err = &errs.LockError{Path: n.part, Err: errors.New("another process is making this folder")}
	}
	if err == nil {
		err = n.clear()
	}
	if err != nil {
		return nil, errors.Join(err, n.lock.Close())
	}
	if n.barrier, err = fsys.OpenBarrier(n.part); err != nil {
		n.barrier = nil
		if !errors.Is(err, errors.ErrUnsupported) {
			return nil, errors.Join(err, n.lock.Close())
		}
	}
	return n, nil
}

// clear removes what a killed process has left.
func (n *newFolder) clear() error {
	names, err := n.fs.ReadDir(n.part)
	if err != nil {
		return fmt.Errorf("looking at %s: %w", n.part, err)
	}
	for _, name := range names {
		if err := RemoveTree(n.fs, filepath.Join(n.part, name), 10); err != nil {
			return fmt.Errorf("clearing %s: %w", n.part, err)
		}
	}
	return nil
}

// RemoveTree removes a file, or a folder with what is in it.
func RemoveTree(fsys vfs.FS, name string, depth int) error {
	info, err := fsys.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode.IsDir() && depth > 0 {
		names, err := fsys.ReadDir(name)
		if err != nil {
			return err
		}
		for _, n := range names {
			if err := RemoveTree(fsys, filepath.Join(name, n), depth-1); err != nil {
				return err
			}
		}
	}
	return fsys.Remove(name)
}

func (n *newFolder) path(elem ...string) string {
	return filepath.Join(append([]string{n.part}, elem...)...)
}

// finish makes all of it durable, and gives it its name. last is a file that
// says that it is whole; "" for none.
func (n *newFolder) finish(last string, data []byte, folders ...string) error {
	if n.barrier != nil {
		if err := n.barrier.Sync(); err != nil {
			return fmt.Errorf("syncing %s: %w: %w", n.part, errs.ErrSyncFailed, err)
		}
	}
	for _, f := range append(folders, "") {
		if err := n.fs.SyncDir(n.path(f)); err != nil {
			return fmt.Errorf("syncing %s: %w: %w", n.path(f), errs.ErrSyncFailed, err)
		}
	}
	if last != "" {
		if err := vfs.WriteDurable(n.fs, n.path(last+".new"), n.path(last), data, n.mode); err != nil {
			return fmt.Errorf("writing %s: %w", n.path(last), err)
		}
	}
	err := n.fs.Remove(n.dir) // an empty one may stand there
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", n.dir, err)
	}
	if err := n.fs.RenameNew(n.part, n.dir); err != nil {
		return fmt.Errorf("naming %s: %w", n.dir, err)
	}
	if err := n.fs.SyncDir(filepath.Dir(n.dir)); err != nil {
		return fmt.Errorf("syncing %s: %w: %w", filepath.Dir(n.dir), errs.ErrSyncFailed, err)
	}
	return nil
}

// discard removes what was made, after a failure.
func (n *newFolder) discard() error { return RemoveTree(n.fs, n.part, 10) }

// dropLock removes the lock file: a process that waits for it sees that, and makes a
// new one. Where an open file cannot be removed it stays, empty.
func (n *newFolder) dropLock() { _ = n.fs.Remove(n.part + ".lock") }

// close lets the folder go, whole or not. It changes no file.
func (n *newFolder) close() error {
	var err error
	if n.barrier != nil {
		err = n.barrier.Close()
	}
	return errors.Join(err, n.lock.Close())
}
