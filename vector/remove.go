package vector

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/varve-db/varve/internal/vfs"
)

// Files are all that may stand in the folder, relative to the store, in the order in
// which they may go: never a delta without its base, never a mapping without its
// vectors.
func Files() []string {
	d, b := levelNames[delta], levelNames[base]
	return []string{d.mapping, d.faiss, d.next, b.mapping, b.faiss, b.next}
}

// Remove takes the files away, where nothing is left that has a vector.
func Remove(fsys vfs.FS, dir string) error {
	for _, name := range Files() {
		if err := fsys.Remove(filepath.Join(dir, filepath.FromSlash(name))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	err := fsys.SyncDir(filepath.Join(dir, Folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
