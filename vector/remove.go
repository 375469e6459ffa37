package vector

import (
	"path/filepath"

	"github.com/varve-db/varve/internal/vfs"
)

// Files are all files that may be in the folder, relative to the store, in the order in which they
// may be removed: never a delta without its base, never a mapping without its vectors.
func Files() []string {
	d, b := levelNames[delta], levelNames[base]
	return []string{d.mapping, d.faiss, d.next, b.mapping, b.faiss, b.next}
}

// Remove takes the files away, where nothing is left that has a vector. The mappings go first,
// durably: one without its vectors would be damage, vectors without one belong to no memory.
func Remove(fsys vfs.FS, dir string) error {
	for _, step := range [][]string{
		{levelNames[delta].mapping, levelNames[base].mapping},
		{levelNames[delta].faiss, levelNames[delta].next, levelNames[base].faiss, levelNames[base].next},
	} {
		for _, name := range step {
			if err := fsys.Remove(filepath.Join(dir, filepath.FromSlash(name))); err != nil && !missing(err) {
				return err
			}
		}
		if err := fsys.SyncDir(filepath.Join(dir, Folder)); err != nil && !missing(err) {
			return err
		}
	}
	return nil
}
