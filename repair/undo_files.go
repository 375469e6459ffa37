package repair

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/vfs"
)

// files puts back what stood at each path. The newest change goes first, so that
// the ground, which was repaired first, is put back last.
func (u *undo) files() error {
	defer u.q.Alone()()
	paths, by := u.first()
	for _, c := range u.list {
		if c.Do == RecordLost && c.ID != "" {
			u.rep.Left = append(u.rep.Left, fmt.Sprintf("%s: its entry had no document; what was known of it is in quarantine", errs.Quote(c.ID)))
		}
	}
	if slices.ContainsFunc(paths, grounded) {
		// It knows the log as it is now. Without it the next opening reads the log,
		// as after a reboot.
		if err := u.remove("wal/shared"); err != nil {
			return err
		}
	}
	for _, rel := range slices.Backward(paths) {
		done, err := u.putBack(by[rel])
		if err != nil {
			return fmt.Errorf("putting %s back: %w", rel, err)
		}
		if done {
			u.rep.Undone = append(u.rep.Undone, rel)
		}
	}
	return nil
}

func (u *undo) putBack(c *change) (done bool, err error) {
	name := u.path(filepath.FromSlash(c.Path))
	now, err := standsAt(u.o.FS, name)
	if err != nil || same(now, c.Before) && (now == nil || now.Mtime.Equal(c.Before.Mtime)) {
		return false, err
	}
	if c.Before == nil {
		if _, err := u.q.Keep(name, docfile.Note{Why: "the repair that made it was undone", From: c.Path}); err != nil {
			return false, err
		}
		return true, u.remove(c.Path)
	}
	if c.Before.Hash == "" {
		return true, u.putSpecial(c, name)
	}
	if now != nil && now.Hash == c.Before.Hash {
		return true, u.touch(name, c)
	}
	from := u.path(filepath.FromSlash(c.Before.Kept))
	if c.Before.Kept == "" {
		from, err = u.q.Find(c.Before.Hash)
		if gone(err) {
			return false, fmt.Errorf("%w: its bytes are not in quarantine", errs.ErrNotFound)
		}
		if err != nil {
			return false, err
		}
	}
	if now != nil && now.Hash != c.Before.Hash {
		if _, err := u.q.Keep(name, docfile.Note{Why: "the repair that made it was undone", From: c.Path}); err != nil {
			return false, err
		}
	}
	temp := u.path("tmp", "undo."+path.Base(c.Path))
	if err := u.copy(from, temp, c); err != nil {
		return false, err
	}
	if err := u.o.FS.Rename(temp, name); err != nil {
		return false, err
	}
	return true, u.o.FS.SyncDir(filepath.Dir(name))
}

// putSpecial moves a folder or a link back. What took its place is kept.
func (u *undo) putSpecial(c *change, name string) error {
	if info, err := u.o.FS.Stat(name); err == nil && info.Mode.IsRegular() {
		if _, err := u.q.Keep(name, docfile.Note{Why: "the repair that made it was undone", From: c.Path}); err != nil {
			return err
		}
		if err := u.remove(c.Path); err != nil {
			return err
		}
	}
	err := u.o.FS.RenameNew(u.path(filepath.FromSlash(c.Before.Kept)), name)
	if gone(err) {
		return nil // moved already
	}
	if err != nil {
		return err
	}
	return u.o.FS.SyncDir(filepath.Dir(name))
}

// touch gives a file its former time.
func (u *undo) touch(name string, c *change) error {
	f, err := u.o.FS.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	err = f.SetMtime(c.Before.Mtime)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// copy makes a file of its own of what lies in quarantine: that stays.
func (u *undo) copy(from, to string, c *change) error {
	if err := vfs.MkdirAll(u.o.FS, u.path("tmp"), u.folderMode()); err != nil {
		return err
	}
	if err := u.o.FS.Remove(to); err != nil && !gone(err) {
		return err
	}
	in, err := u.o.FS.OpenFile(from, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := u.o.FS.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_EXCL, u.o.fileMode())
	if err != nil {
		return err
	}
	b := make([]byte, 1<<20)
	for at := int64(0); err == nil && at < c.Before.Size; {
		var n int
		n, err = in.ReadAt(b[:min(int64(len(b)), c.Before.Size-at)], at)
		if n > 0 {
			if _, werr := out.WriteAt(b[:n], at); werr != nil {
				err = werr
				break
			}
			at += int64(n)
		}
		if err == io.EOF {
			if err = nil; at < c.Before.Size {
				err = io.ErrUnexpectedEOF
			}
		}
	}
	if err == nil {
		err = out.SetMtime(c.Before.Mtime)
	}
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}
