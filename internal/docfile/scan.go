package docfile

import (
	"errors"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"

	"github.com/varve-db/varve/internal/vfs"
)

// Entry is one name in a folder. Only a regular file can be a document. Scan also yields other objects, so that none is
// overlooked, but never follows or opens them.
type Entry struct {
	Name string
	Info vfs.Info
}

// Scan yields the entries of the folder, in the order of their names. It omits entries that vanish meanwhile. If an
// entry cannot be examined, Scan yields the error and continues. If the folder is missing or unreadable, Scan yields an
// error; it never treats such a folder as empty.
func (f *Folder) Scan() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		names, err := f.Names()
		if err != nil {
			yield(Entry{}, err)
			return
		}
		for _, name := range names {
			info, err := f.l.FS.Stat(f.Path(name))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			e := Entry{Name: name, Info: info}
			if err != nil {
				err = failure("examine", f.rel(name), err)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// Names returns all names in the folder, sorted, without checking their types. For a tree these are the paths of
// everything except its folders.
func (f *Folder) Names() ([]string, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	if f.o.Tree {
		names, _, err := f.list()
		return names, err
	}
	names, err := f.l.FS.ReadDir(filepath.Clean(f.dir))
	if err != nil {
		return nil, failure("list", f.name, err)
	}
	slices.Sort(names)
	return names, nil
}
