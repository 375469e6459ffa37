package vfs

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// Entry is a name in a folder, with the type bits of its mode. A link is not followed.
type Entry struct {
	Name string
	Type fs.FileMode
}

// TypeReader is an FS that returns the types of entries when it lists a folder, without a Stat of each. It calls Stat
// only for entries whose type the file system does not return.
type TypeReader interface {
	ReadTypes(name string) ([]Entry, error)
}

// ReadTypes lists a folder with the types of its entries, in no particular order. If fsys is not a TypeReader, it calls
// Stat for each entry; if Stat fails for an entry, the entry counts as a file. Entries that are removed during the
// listing are omitted.
func ReadTypes(fsys FS, name string) ([]Entry, error) {
	if r, ok := fsys.(TypeReader); ok {
		return r.ReadTypes(name)
	}
	names, err := fsys.ReadDir(name)
	if err != nil {
		return nil, err
	}
	list := make([]Entry, 0, len(names))
	for _, n := range names {
		info, err := fsys.Stat(filepath.Join(name, n))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		list = append(list, Entry{Name: n, Type: info.Mode.Type()})
	}
	return list, nil
}

// readTypesBy opens the folder name with the given opener, and lists the folder with the types of its entries.
func readTypesBy(open opener, name string) ([]Entry, error) {
	d, err := openDir(open, name)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	in, err := d.ReadDir(-1)
	list := make([]Entry, len(in))
	for i, e := range in {
		list[i] = Entry{Name: e.Name(), Type: e.Type()}
	}
	return list, err
}
