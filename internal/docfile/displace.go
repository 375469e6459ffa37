package docfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/varve-db/varve/internal/vfs"
)

// judge reports whether the store itself wrote the open file f. A file that the store wrote is not needed once it is
// replaced. f is the file at the path of the change c, or the file that was just replaced there; info describes f.
// data is the new content.
func (w *worker) judge(c *Change, f vfs.File, info vfs.Info, data []byte) bool {
	if info.Size == 0 || info.Mtime.Equal(surplusTime) {
		return true // nothing to lose; or a temp file of ours that a power loss left in the place
	}
	read := func() ([]byte, error) { return readAll(f, info.Size, w.f.o.Limit) }
	if c.Before.matches(info) {
		if c.Before.Hash == "" {
			return true
		}
		if got, err := read(); err == nil && contentHash(got) == c.Before.Hash {
			return true
		}
	}
	if info.Size == int64(len(data)) && info.Mtime.Equal(c.Mtime) {
		if got, err := read(); err == nil && bytes.Equal(got, data) {
			return true // a round is being repeated
		}
	}
	return c.Ours != nil && c.Ours(info, read)
}

func contentHash(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// keeps reports whether the file at a path must stay there: the store did not write it, or it already has the bytes of
// the change. In the latter case keeps makes the file durable, because the log may then release its entries with these
// bytes.
func (w *worker) keeps(c *Change, path string, data []byte) (bool, error) {
	f, err := w.f.o.FS.OpenFile(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return false, nil
	}
	if err != nil {
		return false, failure("open", c.Folder.rel(c.Name), err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return false, failure("examine", c.Folder.rel(c.Name), err)
	}
	if !info.Mode.IsRegular() || info.Mtime.Equal(surplusTime) {
		return false, nil
	}
	if !c.Delete && info.Size == int64(len(data)) {
		if got, err := readAll(f, info.Size, w.f.o.Limit); err == nil && bytes.Equal(got, data) {
			if err := f.Sync(); err != nil {
				return false, syncFailure(c.Folder.rel(c.Name), err)
			}
			return true, nil
		}
	}
	// An editor that saves in place first empties the file: the empty file stays, and is judged when it has
	// content.
	return info.Size == 0 && !c.Before.matches(info) && !w.oursEmpty(c, f, info) || !w.judge(c, f, info, data), nil
}

// oursEmpty reports whether an empty file can be a version of the document that the store wrote.
func (w *worker) oursEmpty(c *Change, f vfs.File, info vfs.Info) bool {
	return c.Ours != nil && c.Ours(info, func() ([]byte, error) { return readAll(f, info.Size, w.f.o.Limit) })
}

// setAside gives a file that the store did not write a second name in quarantine, while the file is still at its path.
// It returns the inode of the file if the file has got such a name, and otherwise nil. If the file system does not
// support hard links, inspect handles the file after it was replaced.
func (w *worker) setAside(i int, c *Change, path string, data []byte) ([]inode, error) {
	f, err := w.f.o.FS.OpenFile(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	if err != nil {
		return nil, failure("open", c.Folder.rel(c.Name), err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, failure("examine", c.Folder.rel(c.Name), err)
	}
	if !info.Mode.IsRegular() || w.judge(c, f, info, data) {
		return nil, nil
	}
	k, err := w.f.quarantine.keep(f, path, c.note(), true)
	if err != nil || k.state != keptLinked {
		return nil, ignoreMissing(err)
	}
	w.r.edit(Edit{Change: i, Folder: c.Folder.name, Name: c.Name, Where: k.where, Info: k.info})
	return []inode{inodeOf(k.info)}, nil
}

// inspect examines the file that was just replaced and is now at path. The file becomes the next temp file, or is
// removed, parked, or moved to quarantine. If it is not a regular file, plain is false and inspect does nothing.
func (w *worker) inspect(i int, c *Change, path string, data []byte, aside []inode) (plain bool, err error) {
	f, writable, err := openDisplaced(w.f.o.FS, path)
	if err != nil {
		if st, serr := w.f.o.FS.Stat(path); serr == nil && !st.Mode.IsRegular() {
			return false, nil
		}
		if errors.Is(err, fs.ErrPermission) {
			return true, w.toQuarantine(i, c, nil, path, false)
		}
		return true, w.postpone(c, path, failure("open", w.f.o.rel(path), err))
	}
	defer func() {
		if f != nil {
			_ = f.Close()
		}
	}()
	granted := leased(f)
	info, err := f.Stat()
	if err != nil {
		return true, w.postpone(c, path, failure("examine", w.f.o.rel(path), err))
	}
	// A file that is not as the last durable round left it may hold anything: a round that was killed may
	// have written into an inode whose blocks still hold another document.
	kept := w.f.keeps() && (w.f.spares == nil || w.f.fresh || c.Delete || !c.Before.matches(info) || !w.f.spares(c))
	switch {
	case !info.Mode.IsRegular():
		return false, nil
	case slices.Contains(aside, inodeOf(info)): // has its name in quarantine
		return true, ignoreMissing(w.f.o.FS.Remove(path))
	case !w.judge(c, f, info, data):
		return true, w.toQuarantine(i, c, f, path, granted)
	case !granted:
		return true, w.f.parked.add(path, believed{c.Folder.name, c.Name, info.Size, info.Mtime})
	case kept && (!writable || info.Nlink != 1): // the purge reports the file, and why it stays
		return true, w.f.parked.add(path, believed{c.Folder.name, c.Name, info.Size, info.Mtime})
	case kept:
	case w.f.fresh || !writable || !w.reusable(info):
		// Under the lease; or without a lease if the hard link of a backup keeps the bytes.
		return true, ignoreMissing(w.f.o.FS.Remove(path))
	}
	t := &temp{path: path, file: f, size: info.Size}
	f = nil // stays open and leased until it is written again or put aside
	if kept {
		return true, w.putAside(t)
	}
	return true, w.keep(t)
}

// openDisplaced opens a file that was replaced. It opens the file for writing, because only a writable file can be
// reused, or for reading if writing is not permitted.
func openDisplaced(fsys vfs.FS, path string) (f vfs.File, writable bool, err error) {
	f, err = fsys.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrPermission) {
		f, err = fsys.OpenFile(path, os.O_RDONLY, 0)
		return f, false, err
	}
	return f, true, err
}

// leased reports whether no other process has the file f open. It returns false if that cannot be determined.
func leased(f vfs.File) bool {
	granted, err := f.Lease()
	return err == nil && granted
}

// toQuarantine moves a replaced file that the store did not write to quarantine, and reports the edit. If the move
// fails, it parks the file (postpone), and a later round moves it.
func (w *worker) toQuarantine(i int, c *Change, f vfs.File, path string, granted bool) error {
	k, err := w.f.quarantine.take(f, path, c.note(), granted)
	if err != nil {
		return w.postpone(c, path, err)
	}
	w.r.edit(Edit{Change: i, Folder: c.Folder.name, Name: c.Name, Where: k.where, Info: k.info})
	return nil
}

// postpone parks a replaced file that cannot be examined or moved now because of err, and returns err. A later round
// examines the file. The name of the parked file contains the size and time of the expected file. If no file was
// expected, or if the expected file is known by its hash, the size is -1, which matches no file.
func (w *worker) postpone(c *Change, path string, err error) error {
	b := believed{folder: c.Folder.name, name: c.Name, size: -1}
	if c.Before.Exists && c.Before.Hash == "" {
		b.size, b.mtime = c.Before.Size, c.Before.Mtime
	}
	return errors.Join(err, w.f.parked.add(path, b))
}

func (c *Change) note() Note {
	n := Note{
		Why: "the file is neither the one that the store wrote nor any known version: it was created or saved by " +
			"hand, or is damaged",
		From:    c.Folder.rel(c.Name),
		ID:      c.ID,
		Version: c.Version,
		Known:   c.Known,
	}
	if c.Before.Exists {
		n.Expected = &Expected{Size: c.Before.Size, Mtime: c.Before.Mtime.UTC(), Hash: c.Before.Hash}
	}
	if c.Delete {
		n.Why = "the file was to be deleted, but " + n.Why
	}
	return n
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
