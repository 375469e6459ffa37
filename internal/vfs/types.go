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

// TypeReader is an FS that returns the types of what is in a folder when it lists the folder, without a look at each
// entry. It looks at an entry whose type the file system does not return.
type TypeReader interface {
	ReadTypes(name string) ([]Entry, error)
}

// ReadTypes lists a folder with the types of what is in it, in no order. If fsys is no TypeReader it looks at each
// entry; one that cannot be looked at counts as a file. What vanishes meanwhile is left out.
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

// readTypesBy is readDirBy with the types.
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
