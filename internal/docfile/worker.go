package docfile

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/yield"
)

// placeTries bounds how often a place is tried that somebody else keeps changing.
const placeTries = 16

// worker makes changes one after another, in a temp folder of its own: folders
// are where file systems serialize.
type worker struct {
	f          *Flusher
	r          *round // the running one
	number     string
	name       string   // of its folder
	dir        string   // path of that, with the separator behind it
	past       []string // names of folders that it had before and that are there, or may be
	folders    int      // so many it has had besides the first
	seq        uint64
	made       int      // files made in the folder
	cur        *temp    // displaced a moment ago, still open and leased
	spare      []string // the pool: closed and marked
	doomed     []string // of the last round: marked, and named as what is overwritten
	like       vfs.Info // what a newly made file looks like; Ino 0: not known yet
	noExchange bool
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
			return fmt.Errorf("get the bytes of %s: %w", c.Folder.rel(c.Name), err)
		}
	}
	if len(data) == 0 && !c.Folder.o.Empty {
		return fmt.Errorf("%s would be empty: %w", c.Folder.rel(c.Name), errs.ErrInvalid)
	}
	t, err := w.take()
	if err != nil {
		return err
	}
	if err := t.write(data, c.Mtime, w.r.each); err != nil {
		return errors.Join(failure("write", c.Folder.rel(c.Name), err), w.drop(t))
	}
	placed, err := w.place(i, c, t, data)
	if placed {
		return err
	}
	// Only what is certainly the file just written: after a failed exchange it
	// might be what stood in the place.
	if info, serr := w.f.o.FS.Stat(t.path); serr == nil && info.Size == int64(len(data)) && info.Mtime.Equal(c.Mtime) {
		_ = w.drop(t)
	}
	return err
}

// place puts t where c says. When it returns placed, t's name belongs to
// whatever was displaced, and that has been dealt with unless err says otherwise.
func (w *worker) place(i int, c *Change, t *temp, data []byte) (placed bool, err error) {
	path := c.Folder.Path(c.Name)
	empty := !c.Before.Exists
	for range placeTries {
		if blocked, err := w.makeFolders(i, c); blocked || err != nil {
			return false, err
		}
		if empty {
			err := w.f.o.FS.RenameNew(t.path, path)
			if err == nil {
				if c.Before.Exists {
					w.r.missing(i)
				}
				return true, nil
			}
			if c.Folder.o.Tree && errors.Is(err, fs.ErrNotExist) {
				continue // another worker, or a user, has removed an empty folder
			}
			if !errors.Is(err, fs.ErrExist) {
				return false, failure("put in place", c.Folder.rel(c.Name), err)
			}
		}
		aside, stands, err := w.before(i, c, data)
		if err != nil || stands == blockedPlace || stands == keptPlace {
			return false, err
		}
		if empty = stands == emptyPlace; empty {
			continue
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

// makeFolders makes the folders that a document of a tree is in. blocked: something else is in the place of
// one, which is noted.
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

// replace swaps t with what stands in the place and looks at what came out.
// done is false when nothing stood there any more, or something new came while it was away.
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
	// A folder or a link, put there since we looked: back with it.
	if err := w.f.o.FS.Exchange(t.path, path); err != nil {
		return true, true, failure("put back", c.Folder.rel(c.Name), err)
	}
	return true, false, w.block(i, c)
}

// replaceInSteps is for systems without exchange: what stands there is renamed
// away, then ours takes the empty place. Linking it away and renaming over it
// would leave no moment without a file, but would destroy one that somebody saves
// between the two calls; a missing file is restored from the log, a lost edit never.
func (w *worker) replaceInSteps(i int, c *Change, t *temp, data []byte, aside []inode) (done, placed bool, err error) {
	path, away := c.Folder.Path(c.Name), w.newName()
	switch err := w.f.o.FS.RenameNew(path, away); {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrExist):
		return false, false, nil
	case err != nil:
		return false, false, failure("take away", c.Folder.rel(c.Name), err)
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

// remove takes a document away. That it is not there is fine.
func (w *worker) remove(i int, c *Change) error {
	if err := c.Folder.enter(c.Name); err != nil {
		if b := (*blockedError)(nil); !errors.As(err, &b) && !errors.Is(err, fs.ErrNotExist) {
			return failure("look at", c.Folder.rel(c.Name), err)
		}
		if c.Before.Exists { // nothing of the store is there
			w.r.missing(i)
		}
		return nil
	}
	defer c.Folder.removeEmpty(c.Name)
	aside, stands, err := w.before(i, c, nil)
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
		return failure("take away", c.Folder.rel(c.Name), err)
	}
	if back, err := w.putBack(i, c, away); back || err != nil {
		return err
	}
	_, err = w.inspect(i, c, away, nil, aside)
	return err
}

// putBack undoes the taking away of what is no plain file.
func (w *worker) putBack(i int, c *Change, away string) (back bool, err error) {
	info, err := w.f.o.FS.Stat(away)
	if err != nil {
		return false, failure("look at", w.f.o.rel(away), err)
	}
	if info.Mode.IsRegular() {
		return false, nil
	}
	if err := w.f.o.FS.RenameNew(away, c.Folder.Path(c.Name)); err != nil {
		return false, failure("put back", c.Folder.rel(c.Name), err)
	}
	return true, w.block(i, c)
}

// block records that the change cannot be made because of what stands there.
func (w *worker) block(i int, c *Change) error {
	info, err := w.f.o.FS.Stat(c.Folder.Path(c.Name))
	if err != nil {
		return failure("look at", c.Folder.rel(c.Name), err)
	}
	if err := c.Folder.regular(c.Name, info); err != nil {
		w.r.blocked(i, err)
		return nil
	}
	return fmt.Errorf("%s changed while it was being replaced", c.Folder.rel(c.Name))
}

type inode struct{ dev, ino uint64 }

func inodeOf(info vfs.Info) inode { return inode{dev: info.Dev, ino: info.Ino} }

type standing int

const (
	emptyPlace standing = iota
	filePlace
	blockedPlace
	keptPlace // a file that stays, see Change.Keep
)

// before looks at the place ahead of the exchange. An edit that can be seen now
// gets its second name, in quarantine, while it still has its first, so that not
// even half an exchange, kept by a power loss, can lose it.
func (w *worker) before(i int, c *Change, data []byte) (aside []inode, stands standing, err error) {
	path := c.Folder.Path(c.Name)
	info, err := w.f.o.FS.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, emptyPlace, nil
	case err != nil:
		return nil, emptyPlace, failure("look at", c.Folder.rel(c.Name), err)
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
