package view

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/varve-db/varve/internal/vfs"
)

// Folder is the folder of a view's files. It contains regular files only, no folders.
type Folder struct {
	FS         vfs.FS
	Path       string // path of the folder
	Temp       string // path of a temporary file in tmp/ that only this process uses
	FileMode   fs.FileMode
	FolderMode fs.FileMode
	// Ready is called before the folder is created, and before a file takes its place: an error prevents that. nil:
	// always ready.
	Ready func() error
}

// make creates the folder of the view, if it is missing.
func (f *Folder) make() error {
	if err := f.ready(); err != nil {
		return err
	}
	return vfs.MkdirAll(f.FS, f.Path, f.FolderMode)
}

func (f *Folder) ready() error {
	if f.Ready == nil {
		return nil
	}
	return f.Ready()
}

// Read reads a file of at most limit bytes.
func (f *Folder) Read(name string, limit int64) ([]byte, error) {
	return vfs.ReadFile(f.FS, filepath.Join(f.Path, name), limit)
}

// Map maps the file that has the given name when Map is called. Later the name may belong to another file.
func (f *Folder) Map(name string) (vfs.Mapping, error) {
	file, err := f.FS.OpenFile(filepath.Join(f.Path, name), os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	m, err := file.Map()
	if cerr := file.Close(); err == nil && cerr != nil {
		return nil, errors.Join(cerr, m.Close())
	}
	return m, err
}

// Write replaces a file atomically and durably.
func (f *Folder) Write(name string, data []byte) error {
	if err := f.make(); err != nil {
		return err
	}
	return vfs.WriteDurable(f.FS, f.Temp, filepath.Join(f.Path, name), data, f.FileMode)
}

// pieceBytes is the number of bytes that WriteBy writes at a time.
const pieceBytes = 1 << 20

// WriteBy is like Write, but the function write produces the contents, by calling give with one piece after
// another.
func (f *Folder) WriteBy(name string, write func(give func(b []byte) error) error) error {
	if err := f.make(); err != nil {
		return err
	}
	return vfs.WriteDurableBy(f.FS, f.Temp, filepath.Join(f.Path, name), func(to io.WriterAt) error {
		at, piece := int64(0), make([]byte, 0, pieceBytes)
		flush := func() error {
			_, err := to.WriteAt(piece, at)
			at, piece = at+int64(len(piece)), piece[:0]
			return err
		}
		err := write(func(b []byte) error {
			for len(b) > 0 {
				n := min(len(b), cap(piece)-len(piece))
				piece, b = append(piece, b[:n]...), b[n:]
				if len(piece) == cap(piece) {
					if err := flush(); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err == nil && len(piece) > 0 {
			err = flush()
		}
		if err == nil {
			err = f.ready()
		}
		return err
	}, f.FileMode)
}

// Names returns the sorted names of the regular files in the folder. It ignores other kinds of files, because the view
// did not create them.
func (f *Folder) Names() (files []string, err error) {
	names, err := f.FS.ReadDir(f.Path)
	slices.Sort(names)
	for _, name := range names {
		info, err := f.FS.Stat(filepath.Join(f.Path, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return files, err
		}
		if info.Mode.IsRegular() {
			files = append(files, name)
		}
	}
	return files, err
}

// Clear durably removes all files of the view, so that Load finds no files.
func (f *Folder) Clear() error {
	names, err := f.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := f.FS.Remove(filepath.Join(f.Path, name)); err != nil {
			return err
		}
	}
	return f.FS.SyncDir(f.Path)
}
