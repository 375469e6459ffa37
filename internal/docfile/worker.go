package docfile

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/yield"
)

// placeTries is the maximum number of attempts of a worker to replace a document's file while another program keeps
// changing the file.
const placeTries = 16

// worker makes changes one after another. Each worker has its own temp folder, because file systems serialize the
// operations in one folder.
type worker struct {
	f       *Flusher
	r       *round // the round that is running
	number  string
	name    string   // name of its folder in tmp/
	dir     string   // path of the folder, with a trailing separator
	past    []string // names of earlier folders of this worker that may still exist
	folders int      // number of folders that the worker has used, besides the first
	seq     uint64
	made    int      // number of files that the worker has created in the folder
	cur     *temp    // the file that was replaced last, still open and leased
	spare   []string // the pool: names of displaced files that are closed and marked as surplus
	// names of files that the last round replaced and that must be overwritten: they are renamed and marked for that
	doomed     []string
	like       vfs.Info // the Info of a newly created file; Ino 0: not known yet
	noExchange bool
	own        vfs.Dir // the folder, opened for unnamed files, during a round; nil: files have names from the start
	turns      yield.Turns
}

func (w *worker) change(i int, c *Change) error {
	if err := c.Folder.checkName(c.Name); err != nil {
		return err
	}
	w.r.entered(c)
	if c.Delete {
		return w.remove(i, c)
	}
	return w.put(i, c)
}

func (w *worker) put(i int, c *Change) error {
	if c.Found && !w.f.distrust && !w.f.fresh {
		if _, err := c.Folder.Stat(c.Name); errors.Is(err, fs.ErrNotExist) {
			w.r.missing(i)
			return nil
		}
	}
	data, err := c.Bytes, error(nil)
	if c.Data != nil {
		if data, err = c.Data(); err != nil {
			return fmt.Errorf("read the new content of %s: %w", c.Folder.rel(c.Name), err)
		}
	}
	if len(data) == 0 && !c.Folder.o.Empty {
		return fmt.Errorf("the new content of %s is empty: %w", c.Folder.rel(c.Name), errs.ErrInvalid)
	}
	t, err := w.take(c)
	if err != nil {
		return err
	}
	err = w.keepMode(c, t)
	if err == nil {
		err = t.write(data, c.Mtime, w.r.each)
	}
	if err != nil {
		return errors.Join(failure("write", c.Folder.rel(c.Name), err), w.drop(t))
	}
	placed, err := w.place(i, c, t, data)
	if errors.Is(err, errUnnamed) {
		_ = w.drop(t)
		w.f.noUnnamed.Store(true)
		return w.put(i, c)
	}
	if placed {
		return err
	}
	if t.unnamed {
		return errors.Join(err, w.drop(t))
	}
	// Remove only what is certainly the file just written: after a failed exchange the name may lead to the
	// file that was in the place.
	if info, serr := w.f.o.FS.Stat(t.path); serr == nil && info.Size == int64(len(data)) && info.Mtime.Equal(c.Mtime) {
		_ = w.drop(t)
	}
	return err
}

// place puts the temp file t at the path of the change c. If placed is true, t has become the document's file, and the
// file that was replaced, if there was one, has got t's former name. place also handles the replaced file, unless err
// is set.
func (w *worker) place(i int, c *Change, t *temp, data []byte) (placed bool, err error) {
	empty := !c.Before.Exists
	for range placeTries {
		if blocked, err := w.makeFolders(i, c); blocked || err != nil {
			return false, err
		}
		if empty {
			err := w.putNew(c, t)
			if err == nil {
				if c.Before.Exists {
					w.r.missing(i)
				}
				return true, nil
			}
			if c.Folder.o.Tree && errors.Is(err, fs.ErrNotExist) {
				if err := c.Folder.Check(); err != nil {
					return false, err // an attempt creates only folders below it
				}
				continue // another worker, or a user, has removed an empty folder
			}
			if !errors.Is(err, fs.ErrExist) {
				return false, failure("put in place", c.Folder.rel(c.Name), err)
			}
		}
		aside, stands, err := w.prepareExchange(i, c, data)
		if err != nil || stands == blockedPlace || stands == keptPlace {
			return false, err
		}
		if empty = stands == emptyPlace; empty {
			continue
		}
		if err := w.giveName(t); err != nil {
			return false, err
		}
		done, placed, err := w.replace(i, c, t, data, aside)
		if done || err != nil {
			return placed, err
		}
		empty = true // as far as we know; RenameNew finds out
	}
	return false, fmt.Errorf("%s: another program keeps creating and removing this file; gave up after %d attempts",
		c.Folder.rel(c.Name), placeTries)
}

// makeFolders creates the folders that contain a document of a tree. If something other than a folder is at the path of
// one, makeFolders records that the change is blocked and returns true.
func (w *worker) makeFolders(i int, c *Change) (blocked bool, err error) {
	if !c.Folder.o.Tree {
		return false, nil
	}
	err = c.Folder.makeFolders(c.Name, w.f.o.folderMode())
	if b := (*blockedError)(nil); errors.As(err, &b) {
		w.r.blocked(i, err)
		return true, nil
	}
	return false, err
}

// replace exchanges the temp file t with the file at the path of the change c, and examines the file that was
// there. done is false if the caller must try again: no file is at the path any more, or another program has
// created one meanwhile. placed reports whether t is now at the path.
func (w *worker) replace(i int, c *Change, t *temp, data []byte, aside []inode) (done, placed bool, err error) {
	if w.noExchange {
		return w.replaceInSteps(i, c, t, data, aside)
	}
	path := c.Folder.Path(c.Name)
	switch err := w.f.o.FS.Exchange(t.path, path); {
	case errors.Is(err, errors.ErrUnsupported):
		w.noExchange = true
		return w.replaceInSteps(i, c, t, data, aside)
	case errors.Is(err, fs.ErrNotExist):
		return false, false, nil
	case err != nil:
		return false, false, failure("exchange", c.Folder.rel(c.Name), err)
	}
	plain, err := w.inspect(i, c, t.path, data, aside)
	if plain || err != nil {
		return true, true, err
	}
	// A folder or a link was put there since it was checked: put it back.
	if err := w.f.o.FS.Exchange(t.path, path); err != nil {
		return true, true, failure("restore", c.Folder.rel(c.Name), err)
	}
	return true, false, w.block(i, c)
}

// replaceInSteps does the same as replace on systems that cannot exchange two names: it renames the present file away
// and then renames t to the free path. If it instead linked the present file and renamed t over it, a file would always
// be at the path, but a file that another program saves between the two calls would be destroyed. A missing file can be
// restored from the log, a lost edit cannot.
func (w *worker) replaceInSteps(i int, c *Change, t *temp, data []byte, aside []inode) (done, placed bool, err error) {
	path, away := c.Folder.Path(c.Name), w.newName()
	switch err := w.f.o.FS.RenameNew(path, away); {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrExist):
		return false, false, nil
	case err != nil:
		return false, false, failure("move away", c.Folder.rel(c.Name), err)
	}
	if back, err := w.putBack(i, c, away); back || err != nil {
		return true, false, err
	}
	err = w.f.o.FS.RenameNew(t.path, path)
	placed = err == nil
	if err != nil && !errors.Is(err, fs.ErrExist) {
		err = failure("put in place", c.Folder.rel(c.Name), err)
	} else {
		err = nil
	}
	_, ierr := w.inspect(i, c, away, data, aside)
	return placed, placed, errors.Join(err, ierr)
}

// remove deletes a document. A missing document is not an error.
func (w *worker) remove(i int, c *Change) error {
	if err := c.Folder.enter(c.Name); err != nil {
		if b := (*blockedError)(nil); !errors.As(err, &b) && !errors.Is(err, fs.ErrNotExist) {
			return failure("examine", c.Folder.rel(c.Name), err)
		}
		if c.Before.Exists { // no file of the store is there
			w.r.missing(i)
		}
		return nil
	}
	defer c.Folder.removeEmpty(c.Name)
	aside, stands, err := w.prepareExchange(i, c, nil)
	if err != nil || stands == blockedPlace || stands == keptPlace {
		return err
	}
	away := w.newName()
	if stands == emptyPlace {
		err = fs.ErrNotExist
	} else {
		for err = fs.ErrExist; errors.Is(err, fs.ErrExist); away = w.newName() {
			if err = w.f.o.FS.RenameNew(c.Folder.Path(c.Name), away); err == nil {
				break
			}
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if c.Before.Exists {
			w.r.missing(i)
		}
		return nil
	case err != nil:
		return failure("move away", c.Folder.rel(c.Name), err)
	}
	if back, err := w.putBack(i, c, away); back || err != nil {
		return err
	}
	_, err = w.inspect(i, c, away, nil, aside)
	return err
}

// putBack renames an object that was renamed away from a document's path back to that path, and records that the change
// is blocked. If the object is a regular file, putBack does nothing and returns false.
func (w *worker) putBack(i int, c *Change, away string) (back bool, err error) {
	info, err := w.f.o.FS.Stat(away)
	if err != nil {
		return false, failure("examine", w.f.o.rel(away), err)
	}
	if info.Mode.IsRegular() {
		return false, nil
	}
	if err := w.f.o.FS.RenameNew(away, c.Folder.Path(c.Name)); err != nil {
		return false, failure("restore", c.Folder.rel(c.Name), err)
	}
	return true, w.block(i, c)
}

// block records in the result that the change cannot be made because something that is not a regular file is at its
// path.
func (w *worker) block(i int, c *Change) error {
	info, err := w.f.o.FS.Stat(c.Folder.Path(c.Name))
	if err != nil {
		return failure("examine", c.Folder.rel(c.Name), err)
	}
	if err := c.Folder.regular(c.Name, info); err != nil {
		w.r.blocked(i, err)
		return nil
	}
	return fmt.Errorf("another program changed %s while the store was replacing the file", c.Folder.rel(c.Name))
}

type inode struct{ dev, ino uint64 }

func inodeOf(info vfs.Info) inode { return inode{dev: info.Dev, ino: info.Ino} }

type standing int

const (
	emptyPlace standing = iota
	filePlace
	blockedPlace
	keptPlace // a file that stays at its path: see Change.Keep
)

// prepareExchange examines a document's path before the exchange. If the store did not write the file there,
// prepareExchange gives the file a second name in quarantine while the file still has its first name. So the file
// is not lost even if a power loss keeps only half of the exchange.
func (w *worker) prepareExchange(i int, c *Change, data []byte) (aside []inode, stands standing, err error) {
	path := c.Folder.Path(c.Name)
	info, err := w.f.o.FS.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, emptyPlace, nil
	case err != nil:
		return nil, emptyPlace, failure("examine", c.Folder.rel(c.Name), err)
	case c.Delete && c.Folder.missing(c.Name, info) != nil:
		return nil, emptyPlace, nil
	case !info.Mode.IsRegular():
		w.r.blocked(i, c.Folder.regular(c.Name, info))
		return nil, blockedPlace, nil
	case c.Before.matches(info):
		return nil, filePlace, nil
	}
	if c.Keep && !w.f.distrust && !w.f.fresh {
		if kept, err := w.keeps(c, path, data); kept || err != nil {
			return nil, keptPlace, err
		}
	}
	aside, err = w.setAside(i, c, path, data)
	return aside, filePlace, err
}
