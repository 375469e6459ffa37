package heal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
)

// errNothing is the result of a repair action that is no longer necessary.
var errNothing = errors.New("the repair is not necessary any more")

// changer replaces and removes files of a store. Before changer replaces or removes a file, it links the file to a
// second name in quarantine/, writes a note about it there, and syncs that name.
type changer struct {
	fs     vfs.FS
	dir    string
	layout docfile.Layout
	mode   fs.FileMode // mode of the files that the changer creates
	clock  func() time.Time
	aside  *docfile.Quarantine
}

func newChanger(layout docfile.Layout, mode fs.FileMode, clock func() time.Time) *changer {
	return &changer{
		fs: layout.FS, dir: layout.Root, layout: layout, mode: mode, clock: clock,
		aside: docfile.NewQuarantine(layout, clock),
	}
}

// keep gives the file at a path in the store a second name in quarantine, and returns that name and
// the file's attributes. The name is "" if there is no file.
func (c *changer) keep(rel string, n docfile.Note) (where string, info vfs.Info, err error) {
	name, err := places.Enter(c.fs, c.dir, rel)
	if err == nil {
		info, err = c.fs.Stat(name)
	}
	if places.Gone(err) {
		return "", info, nil
	}
	if err != nil {
		return "", info, err
	}
	n.From = rel
	if n.Why == "" {
		n.Why = "memctl repair replaced the file"
	}
	where, err = c.aside.Keep(name, n)
	return where, info, err
}

// setAside moves the file at the path rel in the store into quarantine. reason is the reason that the file's note
// in quarantine contains.
func (c *changer) setAside(d *repair.Done, rel, reason string) error {
	return c.setAsideWith(d, rel, docfile.Note{Why: reason, ID: d.ID})
}

// setAsideWith moves a file into quarantine as setAside does, with a note that the caller has written.
func (c *changer) setAsideWith(d *repair.Done, rel string, n docfile.Note) error {
	special, err := c.special(rel)
	if err != nil {
		return err
	}
	if special {
		return c.setSpecialAside(d, rel, n)
	}
	where, _, err := c.keep(rel, n)
	if err != nil {
		return err
	}
	if where == "" {
		return errNothing
	}
	d.Where, d.Result = where, "now in "+where
	return c.remove(rel)
}

// special reports whether the file at a path in the store must be renamed into quarantine, because it cannot get a
// second name or cannot be hashed: it is not a regular file, is too large, or is sparse. The error is errNothing if
// there is no file.
func (c *changer) special(rel string) (bool, error) {
	name, err := places.Enter(c.fs, c.dir, rel)
	var info vfs.Info
	if err == nil {
		info, err = c.fs.Stat(name)
	}
	if places.Gone(err) {
		return false, errNothing
	}
	if err != nil {
		return false, err
	}
	return !info.Mode.IsRegular() || info.Size > docfile.HashMost || vfs.SparseAt(c.fs, name, info.Size), nil
}

// setSpecialAside renames a file, for which special reports true, into quarantine.
func (c *changer) setSpecialAside(d *repair.Done, rel string, n docfile.Note) error {
	name, err := places.Enter(c.fs, c.dir, rel)
	if err != nil {
		return err
	}
	where, err := c.aside.Special(name, n)
	if places.Gone(err) {
		return errNothing
	}
	if err != nil {
		return err
	}
	d.Where, d.Result = where, "now in "+where
	return nil
}

// remove removes a file that has a second name in quarantine, and syncs the folder.
func (c *changer) remove(rel string) error {
	name, err := places.Enter(c.fs, c.dir, rel)
	if err != nil {
		return err
	}
	if err := c.fs.Remove(name); err != nil && !places.Gone(err) {
		return err
	}
	return c.fs.SyncDir(filepath.Dir(name))
}

// clear frees a path that is needed for a new file. If the object at the path cannot be kept under a second name (see
// special), for example a link or a folder, clear moves the object into quarantine. clear leaves an ordinary file in
// place.
func (c *changer) clear(d *repair.Done, rel string) error {
	special, err := c.special(rel)
	if errors.Is(err, errNothing) || err == nil && !special {
		return nil
	}
	if err != nil {
		return err
	}
	done := *d
	err = c.setSpecialAside(&done, rel, noteOf(d))
	d.Where = done.Where
	return err
}

// keepFor keeps in quarantine the file that an action is about to replace or remove.
func (c *changer) keepFor(d *repair.Done, rel string) error {
	if err := c.clear(d, rel); err != nil {
		return err
	}
	where, _, err := c.keep(rel, noteOf(d))
	if where != "" && d.Where == "" {
		d.Where = where
	}
	return err
}

// write replaces the file at rel with one that contains data, and keeps the old file in quarantine.
func (c *changer) write(d *repair.Done, rel string, data []byte) error {
	return c.writeAt(d, rel, data, c.clock())
}

// writeAt does the same as write, and gives the new file the modification time mtime.
func (c *changer) writeAt(d *repair.Done, rel string, data []byte, mtime time.Time) error {
	if err := c.keepFor(d, rel); err != nil {
		return err
	}
	name, err := places.Enter(c.fs, c.dir, rel)
	if err != nil {
		return err
	}
	temp := c.path("tmp", "repair."+filepath.Base(name))
	if err := c.layout.Folder("tmp").Make(); err != nil {
		return err
	}
	if err := c.fs.Remove(temp); err != nil && !places.Gone(err) {
		return err
	}
	f, err := c.fs.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, c.mode)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	if k := kind.At(rel); err == nil && k != nil && k.FileWins {
		err = c.keepMode(f, name)
	}
	if err == nil {
		err = f.SetMtime(mtime)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := c.fs.Rename(temp, name); err != nil {
		return err
	}
	return c.fs.SyncDir(filepath.Dir(name))
}

// keepMode gives the new file f the permission bits with which f may replace the file at the path name; see
// docfile.KeepMode.
func (c *changer) keepMode(f vfs.File, name string) error {
	made, err := f.Stat()
	if err != nil {
		return err
	}
	return docfile.KeepMode(c.fs, name, f, made, c.mode)
}

// path returns the path of a file or folder of the store.
func (c *changer) path(elem ...string) string {
	return filepath.Join(append([]string{c.dir}, elem...)...)
}

// noteOf returns the quarantine note for a file that a repair action replaces.
func noteOf(d *repair.Done) docfile.Note {
	n := docfile.Note{Why: reasonOf(d.Findings), ID: d.ID}
	for _, f := range d.Findings {
		n.Version = max(n.Version, f.LSN)
	}
	return n
}

// reasonOf returns the kind and the error of the first finding that has an error, as one text. It returns "repair" if
// no finding has an error.
func reasonOf(list []repair.Finding) string {
	for _, f := range list {
		if f.Err != nil {
			return string(f.Kind) + ": " + f.Err.Error()
		}
	}
	return "repair"
}
