package vector

import (
	"path/filepath"

	"github.com/varve-db/varve/internal/vfs"
)

// Files returns the names of all vector files that a store may have, relative to the store, in an order in
// which they may be removed: a delta before its base, a mapping before its vectors.
func Files() []string {
	d, b := levelNames[delta], levelNames[base]
	return []string{d.mapping, d.faiss, d.next, b.mapping, b.faiss, b.next}
}

// Remove removes all vector files of the store in dir, because no document has a vector any more. It removes
// the mappings first and syncs the folder: a mapping without its vectors would be damage, while vectors
// without a mapping are ignored.
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
