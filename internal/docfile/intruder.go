package docfile

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"

	"github.com/varve-db/varve/internal/vfs"
)

// Intruder moves what is no folder out of the place of one into quarantine: a symbolic
// link, a file, a FIFO. Of a link it is the link; what it leads to is not touched.
func (q *Quarantine) Intruder(name string) (where string, err error) {
	if err := q.l.makeFolder(quarantineFolder); err != nil {
		return "", err
	}
	rel := q.l.rel(name)
	for i := 1; i <= copies; i++ {
		target := q.target(nil, rel, i)
		if _, err := q.l.FS.Stat(target); err == nil {
			continue
		}
		n := Note{Why: "found in the place of a folder of the store", From: rel}
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

// ClearTemp makes way for a folder in tmp/: what is there and is none goes to quarantine.
// Nothing in tmp/ is worth stopping for, and what a stranger put there is his.
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
	return []Edit{{Change: -1, Folder: path.Dir(f.o.rel(name)), Name: filepath.Base(name), Where: where, Info: vfs.Info{Mode: info.Mode, Mtime: info.Mtime}}}, nil
}

// MoveBeside gives what is in the place of quarantine/ itself another name in its folder,
// which is returned.
func MoveBeside(fsys vfs.FS, name string) (beside string, err error) {
	for i := 1; i <= copies; i++ {
		to := name + ".aside." + strconv.Itoa(i)
		if err = fsys.RenameNew(name, to); !errors.Is(err, fs.ErrExist) {
			return filepath.Base(to), err
		}
	}
	return "", err
}
