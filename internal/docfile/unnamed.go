package docfile

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/varve-db/varve/internal/vfs"
)

// errUnnamed means that the system cannot name an unnamed file: it must be written again, as a file with a name.
var errUnnamed = errors.New("this system cannot give a name to a file that was created without one")

// openPlaces opens the folders of the documents of a round, for unnamed files: see the package comment. If the system
// does not support unnamed files, or if the round is small, it opens none.
func (p *Placed) openPlaces() error {
	r := p.r
	if r.f.o.Unnamed < 0 || r.n < r.f.o.Unnamed || r.f.noUnnamed.Load() {
		return nil
	}
	for _, folder := range r.src.Folders() {
		if folder.o.Tree || r.places[folder] != nil {
			continue
		}
		d, err := r.f.openDir(folder.dir)
		if d == nil || err != nil {
			return err
		}
		if r.places == nil {
			r.places = map[*Folder]vfs.Dir{}
		}
		r.places[folder] = d
	}
	return nil
}

// samePlaces returns an error if a folder of documents was replaced during the round, so that files of the round are in
// another folder than the one that has its path now.
func (r *round) samePlaces() error {
	for folder, d := range r.places {
		was, err := d.Stat()
		if err != nil {
			return failure("examine", folder.name, err)
		}
		now, err := r.f.o.FS.Stat(filepath.Clean(folder.dir))
		if err == nil && inodeOf(now) != inodeOf(was) {
			err = fmt.Errorf("the folder was replaced while files were put into it: %w", fs.ErrNotExist)
		}
		if err != nil {
			return failure("examine", folder.name, err)
		}
	}
	return nil
}

func (r *round) closePlaces() {
	for _, d := range r.places {
		_ = d.Close()
	}
	r.places = nil
}

// openOwn opens the worker's folder in tmp/, in which it creates unnamed files. Each worker has a folder of its own;
// see moveOn for the reason why it changes.
func (w *worker) openOwn() error {
	if w.r.places == nil {
		return nil
	}
	d, err := w.f.openDir(w.dir)
	w.own = d
	return err
}

// openDir opens a folder for unnamed files. If the system does not support unnamed files, openDir records that and
// returns nil.
func (f *Flusher) openDir(dir string) (vfs.Dir, error) {
	dir = filepath.Clean(dir)
	d, err := vfs.OpenDir(f.o.FS, dir)
	if errors.Is(err, errors.ErrUnsupported) {
		f.noUnnamed.Store(true)
		return nil, nil
	}
	if err != nil {
		return nil, failure("open the folder", f.o.rel(dir), err)
	}
	return d, nil
}

func (w *worker) closeOwn() {
	if w.own != nil {
		_ = w.own.Close()
		w.own = nil
	}
}

// createUnnamed creates a file without a name for the new document of a change. It returns nil if the file needs a name
// from the start: the document may exist, it is in a tree, or the system has no unnamed files.
func (w *worker) createUnnamed(c *Change) (*temp, error) {
	if w.own == nil || c.Before.Exists || w.r.places[c.Folder] == nil || w.f.noUnnamed.Load() {
		return nil, nil
	}
	file, err := w.own.CreateUnnamed(w.f.o.fileMode())
	if errors.Is(err, errors.ErrUnsupported) {
		w.f.noUnnamed.Store(true)
		return nil, nil
	}
	if err == nil {
		err = w.learn(file)
	}
	if err != nil {
		return nil, failure("make a file in", w.f.o.rel(filepath.Clean(w.dir)), err)
	}
	w.made++
	return &temp{file: file, unnamed: true}, nil
}

// learn records the Info of a newly created file, once for each worker. If the Info cannot be read, learn closes the
// file and returns the error.
func (w *worker) learn(file vfs.File) (err error) {
	if w.like.Ino != 0 {
		return nil
	}
	if w.like, err = file.Stat(); err != nil {
		_ = file.Close()
	}
	return err
}

// putNew puts the temp file t at the path of a document that does not exist. It returns fs.ErrExist if something is
// there.
func (w *worker) putNew(c *Change, t *temp) error {
	if !t.unnamed {
		return w.f.o.FS.RenameNew(t.path, c.Folder.Path(c.Name))
	}
	err := w.r.places[c.Folder].LinkUnnamed(t.file, c.Name)
	if errors.Is(err, errors.ErrUnsupported) {
		return errUnnamed
	}
	if err == nil {
		t.unnamed = false
		err = t.close()
	}
	return err
}

// giveName gives an unnamed temp file a name in the worker's folder, so that it can replace a file.
func (w *worker) giveName(t *temp) error {
	for t.unnamed {
		path := w.newName()
		err := w.own.LinkUnnamed(t.file, filepath.Base(path))
		switch {
		case errors.Is(err, fs.ErrExist):
			continue
		case errors.Is(err, errors.ErrUnsupported):
			return errUnnamed
		case err != nil:
			return failure("name", w.f.o.rel(path), err)
		}
		t.path, t.unnamed = path, false
		return t.close()
	}
	return nil
}

func (t *temp) close() error {
	err := t.file.Close()
	t.file = nil
	return err
}
