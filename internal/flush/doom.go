package flush

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/views"
	"github.com/varve-db/varve/vector"
	"github.com/varve-db/varve/wal"
)

// oldIndex has the open files of the index, the vectors and the views that are about to be replaced by files without
// the purged data.
type oldIndex []oldTable

type oldTable struct {
	name string
	file *vfs.Doomed // the open file; nil: it is unknown whether a process has it mapped
	info vfs.Info
}

// DoomIndex opens base and delta of the index, the vectors and the views. A purge overwrites these files after it has
// replaced them. It cannot overwrite a file earlier: a process that still has the file mapped must not read zeros, and
// only after the file's name is removed is it known whether a process has it mapped.
//
// If a file of a view cannot be found or opened at the moment, a purge ends before anything replaces the file:
// otherwise the bytes of the replaced file would be in free blocks, where no purge finds them. A round that is not
// part of a purge continues, and leaves the views unchanged. purge reports whether the caller is a purge.
func (fl *Flusher) DoomIndex(ctx context.Context, held *wal.Held, purge bool) (oldIndex, error) {
	if err := fl.vectors.Lock.Lock(ctx); err != nil {
		return nil, err
	}
	err := fl.vectors.Close() // the mappings of this process
	fl.vectors.Lock.Unlock()
	if err != nil {
		return nil, err
	}
	names := append([]string{index.BaseName, index.DeltaName}, vector.Files()...)
	indexes := len(names)
	var old oldIndex
	seen, err := fl.views.Doom(held)
	if err != nil && purge {
		return nil, err
	}
	for i, name := range append(names, seen...) {
		path := filepath.Join(fl.engine.Env().Dir, name)
		info, err := fl.engine.Env().FS.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var f *vfs.Doomed
		second := filepath.Base(name)
		if i >= indexes {
			second = fmt.Sprint("view.", i) // views have their own names: two may be equal, or too long
		}
		if err == nil {
			f, err = vfs.Doom(fl.engine.Env().FS, path,
				filepath.Join(fl.engine.Env().Dir, filepath.FromSlash(PurgeFolder), second+docfile.DoomedSuffix), true)
		}
		switch {
		case err == nil:
		case i < indexes, purge && !errors.Is(err, errs.ErrInvalid):
			return old, errors.Join(fl.engine.Env().IOError("opening", path, err), old.Close())
		default:
			err = fl.engine.Env().IOError("opening", path, err)
			if fl.views.NoteMissed(held, err); !errors.Is(err, errs.ErrInvalid) {
				views.Keep(fl.views, held, err)
			}
			continue
		}
		old = append(old, oldTable{name, f, info})
	}
	return old, nil
}

// Close closes the files.
func (o oldIndex) Close() (err error) {
	for _, t := range o {
		err = errors.Join(err, t.file.Close())
	}
	return err
}

// Wipe overwrites and removes the files in o that no longer have their names. It does not overwrite a file that has
// become a backup of the index, or that has another name: it adds the latter to r.Left. It adds a file that it could
// not overwrite, because another process has the file open, to r.Unlinked. An error also means that nothing may be
// erased in the log yet: see Views.Behind.
func (o oldIndex) Wipe(held *wal.Held, fl *Flusher, r *Remains) (err error) {
	verr, behind := fl.views.Behind(held)
	if verr != nil {
		r.Left = append(r.Left, verr)
	}
	if verr != nil && behind {
		err = verr
	}
	for _, t := range o {
		path := filepath.Join(fl.engine.Env().Dir, t.name)
		if ino := t.file.Named(); ino != 0 {
			has, herr := fl.indexHas(path, ino)
			if herr != nil {
				err = errors.Join(err, fl.engine.Env().IOError("looking at", path, herr))
			} else if !has {
				r.Left = append(r.Left, &vfs.UnwipedError{Path: path, Ino: ino, Err: vfs.ErrLinked})
			}
		}
		left, werr := t.file.Wipe()
		if werr != nil {
			err = errors.Join(err, fl.engine.Env().IOError("overwriting", path, werr))
		}
		if now, serr := fl.engine.Env().FS.Stat(path); left && (serr != nil || now.Ino != t.info.Ino) {
			r.Unlinked = append(r.Unlinked, t.name)
		}
	}
	return err
}

// indexHas reports whether the file with the inode number ino is still at path, or is a backup of the index.
func (fl *Flusher) indexHas(path string, ino uint64) (bool, error) {
	is := func(path string) (bool, error) {
		now, err := fl.engine.Env().FS.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return err == nil && now.Ino == ino, err
	}
	if has, err := is(path); has || err != nil {
		return has, err
	}
	list, err := index.Backups(fl.engine.Env().FS, fl.engine.Env().Dir)
	if err != nil {
		return false, err
	}
	for _, b := range list {
		if has, err := is(filepath.Join(fl.engine.Env().Dir, filepath.FromSlash(b.Name))); has || err != nil {
			return has, err
		}
	}
	return false, nil
}
