package vector

import (
	"path/filepath"

	"github.com/varve-db/varve/internal/vfs"
)

// Files returns the names of all vector files that a store may have, relative to the store's folder. The files may be
// removed in this order: the delta before the base, and a mapping file before its FAISS file.
func Files() []string {
	d, b := levelNames[delta], levelNames[base]
	return []string{d.mapping, d.faiss, d.next, b.mapping, b.faiss, b.next}
}

// Remove removes all vector files of the store in dir. Call it when no document has a vector any more. It first
// removes the mapping files and syncs the folder, because a mapping file without its FAISS file counts as damage, but
// a FAISS file without its mapping file is ignored.
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
