package views

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
)

// ignoreText is the content of .gitignore in the folder of the views. The file also marks the folder as the
// store's: in a folder without it, which the user may have made, nothing is removed.
const ignoreText = "# Made by varve: all of it can be rebuilt.\n*\n"

func (vs *Views) isOurs() bool {
	ours, err := vs.owned()
	return ours && err == nil
}

// owned reports whether the folder of the views is marked as the store's, or returns an error if it cannot be
// read at the moment.
func (vs *Views) owned() (bool, error) {
	b, err := vfs.ReadFile(vs.engine.Env().FS, vs.path(".gitignore"), 1024)
	if err != nil && (inTheWay(err) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, errs.ErrTooLarge)) {
		return false, nil
	}
	return string(b) == ignoreText, err
}

// inTheWay reports whether err means that a link, a file of another kind or a missing permission prevents access to a
// file or folder of the views. A retry will not help then.
func inTheWay(err error) bool { return errors.Is(err, errs.ErrInvalid) || vfs.IsPermission(err) }

// enter prepares the folder of the views for writing. It raises the store's feature for views and creates the folder.
// It returns false if a process that does not know the feature has the store open, or if a process is opening the store
// at that moment.
func (vs *Views) enter(held *wal.Held) (bool, error) {
	log := vs.engine.Log()
	ok, err := log.RaiseFlushing(held, wal.FeatureViews|wal.FeatureTerms)
	if err == nil && !ok || errors.Is(err, errs.ErrInvalid) { // some program knows only the first version of the terms
		ok, err = log.RaiseFlushing(held, wal.FeatureViews)
	}
	if err != nil || !ok {
		return false, err
	}
	eng := vs.engine.Env()
	if err := log.Folder().InPlace(); err != nil {
		return false, err
	}
	if err := vfs.MkdirAll(eng.FS, vs.path(), eng.FolderMode); err != nil {
		return false, err
	}
	if vs.isOurs() {
		return true, nil
	}
	err = vs.strange()
	if err == nil {
		err = vfs.WriteDurable(eng.FS, vs.engine.ViewFolder("").Temp, vs.path(".gitignore"), []byte(ignoreText), eng.FileMode)
	}
	return err == nil, err
}

// strange returns an error if the folder of the views has files but is not marked as the store's own folder. In that
// case no file in the folder may be changed.
func (vs *Views) strange() error {
	names, err := vs.engine.Env().FS.ReadDir(vs.path())
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && (len(names) == 0 || slices.Equal(names, []string{".gitignore"})),
		vs.isOurs():
		return nil
	case err != nil:
		return vs.engine.Env().IOError("reading", vs.path(), err)
	}
	return fmt.Errorf("%w: %s has files of other programs: move them elsewhere", errs.ErrInvalid, places.Views)
}

// unknown returns an error if the folder of the views is not marked as the store's but has files of views.
func (vs *Views) unknown() error {
	if vs.isOurs() {
		return nil
	}
	for _, v := range vs.list {
		if names, err := vs.engine.ViewFolder(v.Name()).Names(); err == nil && len(names) > 0 {
			return vs.strange()
		}
	}
	return nil
}
