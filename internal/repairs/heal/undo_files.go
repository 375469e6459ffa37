package heal

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/journal"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/repair"
)

// files puts back what stood at each path. The newest change goes first, so that
// the ground, which was repaired first, is put back last.
func (u *undo) files() error {
	defer u.Quarantine.Alone()()
	paths, by := u.first()
	for _, c := range u.list {
		if c.Do == repair.RecordLost && c.ID != "" {
			u.rep.Left = append(u.rep.Left, fmt.Sprintf("%s: its entry had no document; what was known of it is in quarantine", human.Quote(c.ID)))
		}
		if err := c.Unlikely(); err != nil {
			u.rep.Left = append(u.rep.Left, fmt.Sprintf("%s: %v; what was there is in quarantine", places.Shown(c.Path), err))
		}
	}
	if slices.ContainsFunc(paths, grounded) {
		// It knows the log as it is now. Without it the next opening reads the log,
		// as after a reboot.
		if err := u.Remove("wal/shared"); err != nil {
			return err
		}
	}
	for _, rel := range slices.Backward(paths) {
		if err := u.ctx.Err(); err != nil {
			return err
		}
		done, err := u.putBack(by[rel])
		if err != nil {
			return fmt.Errorf("putting %s back: %w", places.Shown(rel), err)
		}
		if done {
			u.rep.Undone = append(u.rep.Undone, places.Shown(rel))
		}
	}
	return nil
}

func (u *undo) putBack(c *journal.Change) (done bool, err error) {
	name, err := places.Enter(u.o.FS, u.Dir, c.Path)
	if places.Gone(err) && c.Before == nil {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	now, err := u.now(c.Path, c.Before)
	if err != nil || same(now, c.Before) && (now == nil || now.Mtime.Equal(c.Before.Mtime)) {
		return false, err
	}
	if c.Before == nil {
		if _, err := u.Quarantine.Keep(name, docfile.Note{Why: "the repair that made it was undone", From: c.Path}); err != nil {
			return false, err
		}
		return true, u.Remove(c.Path)
	}
	if c.Before.Hash == "" {
		return true, u.putSpecial(c, name)
	}
	if now != nil && now.Hash == c.Before.Hash {
		return true, u.touch(name, c)
	}
	from, err := u.keptFile(c)
	if err != nil {
		return false, err
	}
	temp, err := u.copy(from, c)
	if err != nil {
		return false, err
	}
	if now != nil {
		if _, err := u.Quarantine.Keep(name, docfile.Note{Why: "the repair that made it was undone", From: c.Path}); err != nil {
			return false, err
		}
	}
	if err := u.o.FS.Rename(temp, name); err != nil {
		return false, err
	}
	return true, u.o.FS.SyncDir(filepath.Dir(name))
}

// keptFile is where the bytes of what stood somewhere are now.
func (u *undo) keptFile(c *journal.Change) (string, error) {
	if c.Before.Kept != "" {
		return places.Enter(u.o.FS, u.Dir, c.Before.Kept)
	}
	from, err := u.Quarantine.Find(c.Before.Hash)
	if places.Gone(err) {
		err = fmt.Errorf("%w: its bytes are not in quarantine", errs.ErrNotFound)
	}
	return from, err
}

// putSpecial moves a folder or a link back. What took its place is kept.
func (u *undo) putSpecial(c *journal.Change, name string) error {
	from, err := places.Enter(u.o.FS, u.Dir, c.Before.Kept)
	if err != nil {
		return err
	}
	if info, err := u.o.FS.Stat(name); err == nil && info.Mode.IsRegular() {
		if _, err := u.Quarantine.Keep(name, docfile.Note{Why: "the repair that made it was undone", From: c.Path}); err != nil {
			return err
		}
		if err := u.Remove(c.Path); err != nil {
			return err
		}
	}
	err = u.o.FS.RenameNew(from, name)
	if places.Gone(err) {
		return nil // moved already
	}
	if err != nil {
		return err
	}
	return u.o.FS.SyncDir(filepath.Dir(name))
}

// touch gives a file its former time.
func (u *undo) touch(name string, c *journal.Change) error {
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

// copy makes a file of its own of what is in quarantine, which stays, and returns its path:
// of these bytes or of none. What is there may have changed since the repair.
func (u *undo) copy(from string, c *journal.Change) (to string, err error) {
	if err := u.o.layout(u.Dir).Folder("tmp").Make(); err != nil {
		return "", err
	}
	to = u.Path("tmp", "undo."+path.Base(c.Path))
	if err := u.o.FS.Remove(to); err != nil && !places.Gone(err) {
		return "", err
	}
	in, err := u.o.FS.OpenFile(from, os.O_RDONLY, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode.IsRegular() || info.Size != c.Before.Size {
		return "", u.other(c, fmt.Errorf("it is %s of %d bytes, and was a file of %d", info.Mode, info.Size, c.Before.Size))
	}
	out, err := u.o.FS.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_EXCL, u.o.fileMode())
	if err != nil {
		return "", err
	}
	hash, err := u.copyBytes(out, in, info.Size)
	if err == nil && hash != c.Before.Hash {
		err = u.other(c, fmt.Errorf("its hash is %s, and was %s", hash, c.Before.Hash))
	}
	if err == nil {
		err = out.SetMtime(c.Before.Mtime)
	}
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return "", errors.Join(err, u.o.FS.Remove(to))
	}
	return to, nil
}

// other says that what was kept of a place is something else by now.
func (u *undo) other(c *journal.Change, err error) error {
	return &errs.CorruptionError{Path: places.Shown(c.Before.Kept), Offset: -1, Err: err}
}

// copyBytes copies a file and returns the hash of what it wrote.
func (u *undo) copyBytes(out io.WriterAt, in io.ReaderAt, size int64) (string, error) {
	h, b := sha256.New(), make([]byte, min(1<<20, size+1))
	for at := int64(0); at < size; {
		if err := u.ctx.Err(); err != nil {
			return "", err
		}
		n, err := in.ReadAt(b[:min(int64(len(b)), size-at)], at)
		if n > 0 && errors.Is(err, io.EOF) {
			err = nil
		} else if n == 0 && (err == nil || errors.Is(err, io.EOF)) {
			err = io.ErrUnexpectedEOF
		}
		if err == nil {
			_, err = out.WriteAt(b[:n], at)
		}
		if err != nil {
			return "", err
		}
		_, _ = h.Write(b[:n])
		at += int64(n)
	}
	return fmt.Sprintf("sha256:%x", h.Sum(nil)), nil
}
