package docfile

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"

	"github.com/varve-db/varve/internal/vfs"
)

// Special moves an object to quarantine that cannot be a hard link there, or that is not hashed: a folder, a symbolic
// link, a FIFO, a file that is too large. It renames the object and never opens it, and does not touch the target of a
// link. The note is made durable first, so a killed process leaves at most a note without its subject.
func (q *Quarantine) Special(name string, n Note) (where string, err error) {
	if err := q.l.makeFolder(quarantineFolder); err != nil {
		return "", err
	}
	info, err := q.l.FS.Stat(name)
	if err != nil {
		return "", err
	}
	rel := q.l.rel(name)
	if n.From == "" {
		n.From = rel
	}
	n.Size, n.Mtime = info.Size, info.Mtime.UTC()
	if n.NotHashed = vfs.KindOf(info.Mode); info.Mode.IsRegular() {
		n.NotHashed = Unhashed(n.From, info.Size, vfs.SparseAt(q.l.FS, name, info.Size))
	}
	for i := 1; i <= copies; i++ {
		target := q.target(nil, rel, i)
		if _, err := q.l.FS.Stat(target); err == nil || q.noteOfAnother(target, n.From) {
			continue
		}
		if err := q.note(target, n); err != nil {
			return "", err
		}
		switch err := q.l.FS.RenameNew(name, target); {
		case errors.Is(err, fs.ErrExist):
			continue
		case err != nil:
			return "", failure("set aside", rel, err)
		}
		if err := q.sync(); err != nil {
			return "", err
		}
		if err := q.l.FS.SyncDir(filepath.Dir(name)); err != nil {
			return "", syncFailure(path.Dir(rel), err)
		}
		return q.l.rel(target), nil
	}
	return "", q.tooMany(path.Base(rel))
}

// noteOfAnother reports whether a note with the name for target already exists, left by a killed process, and is about
// a file from a path other than from. It also returns true if that note cannot be read. Names without a hash may be
// used for files from several paths.
func (q *Quarantine) noteOfAnother(target, from string) bool {
	b, err := vfs.ReadText(q.l.FS, target+noteSuffix, noteMost)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	var n Note
	return err != nil || json.Unmarshal(b, &n) != nil || n.From != from
}

// Intruder moves anything except a folder from the path of one of the store's folders to quarantine; see
// Quarantine.Special.
func (q *Quarantine) Intruder(name string) (where string, err error) {
	return q.Special(name, Note{Why: "was at the path of one of the store's folders"})
}

// Aside moves anything except a regular file from the path of a document to quarantine; see Quarantine.Special.
func (f *Flusher) Aside(name string, n Note) (where string, err error) {
	return f.quarantine.Special(name, n)
}

// ClearTemp moves to quarantine anything that is at the path of a folder in tmp/ and is not a folder. The store must
// not refuse to work because of an object in tmp/, and must keep objects that other programs put there.
func (f *Flusher) ClearTemp(elem ...string) ([]Edit, error) {
	if err := f.o.checkFolder(f.o.path(tempFolder)); err != nil {
		return nil, ignoreMissing(err)
	}
	name := f.o.path(append([]string{tempFolder}, elem...)...)
	return f.clear(name)
}

func (f *Flusher) clear(name string) ([]Edit, error) {
	info, err := f.o.FS.Stat(name)
	if err != nil || info.Mode.IsDir() {
		return nil, ignoreMissing(err)
	}
	where, err := f.quarantine.Intruder(name)
	if err != nil {
		return nil, ignoreMissing(err)
	}
	return []Edit{{Change: -1, Folder: path.Dir(f.o.rel(name)), Name: filepath.Base(name), Where: where,
		Info: vfs.Info{Mode: info.Mode, Mtime: info.Mtime}}}, nil
}

// MoveBeside moves an object away that is at the path of quarantine/ itself and is not a folder. It renames the object
// to another name in the same parent folder, and returns that name. name is the path of the object.
func MoveBeside(fsys vfs.FS, name string) (beside string, err error) {
	for i := 1; i <= copies; i++ {
		to := name + ".aside." + strconv.Itoa(i)
		if err = fsys.RenameNew(name, to); !errors.Is(err, fs.ErrExist) {
			return filepath.Base(to), err
		}
	}
	return "", err
}
