package flush

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/vector"
	"github.com/varve-db/varve/wal"
)

// oldIndex is what the index is made of before it is written without what is purged.
type oldIndex []oldTable

type oldTable struct {
	name string
	file *vfs.Doomed // nil: nobody could tell whether it is mapped
	info vfs.Info
}

// DoomIndex takes hold of base and delta, of the vectors and of the views: a process that
// still has them mapped must not read zeros, and that is known only when their names are gone.
func (fl *Flusher) DoomIndex(ctx context.Context, held *wal.Held) (oldIndex, error) {
	if err := fl.Vectors.Lock.Lock(ctx); err != nil {
		return nil, err
	}
	err := fl.Vectors.Close() // our own
	fl.Vectors.Lock.Unlock()
	if err != nil {
		return nil, err
	}
	names := append([]string{index.BaseName, index.DeltaName}, vector.Files()...)
	indexes := len(names)
	var old oldIndex
	for i, name := range append(names, fl.Views.Doom(held)...) {
		path := filepath.Join(fl.Engine.Env.Dir, name)
		info, err := fl.Engine.Env.FS.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var f *vfs.Doomed
		second := filepath.Base(name)
		if i >= indexes {
			second = fmt.Sprint("view.", i) // a view's names are its own: two may be equal, or too long
		}
		if err == nil {
			f, err = vfs.Doom(fl.Engine.Env.FS, path, filepath.Join(fl.Engine.Env.Dir, filepath.FromSlash(PurgeFolder), second+docfile.DoomedSuffix), true)
		}
		switch {
		case err == nil:
		case i < indexes:
			return old, errors.Join(fl.Engine.Env.IOError("opening", path, err), old.Close())
		default:
			fl.Views.Missed(held, fl.Engine.Env.IOError("opening", path, err))
			continue
		}
		old = append(old, oldTable{name, f, info})
	}
	return old, nil
}

// Close lets go what may have kept its name.
func (o oldIndex) Close() (err error) {
	for _, t := range o {
		err = errors.Join(err, t.file.Close())
	}
	return err
}

// Wipe overwrites what has lost its name since. What is a backup now is written
// again as one.
func (o oldIndex) Wipe(held *wal.Held, fl *Flusher, r *Remains) (err error) {
	if verr := fl.Views.Left(held); verr != nil {
		r.Left = append(r.Left, verr)
	}
	for _, t := range o {
		path := filepath.Join(fl.Engine.Env.Dir, t.name)
		if ino := t.file.Named(); ino != 0 && !fl.indexHas(path, ino) {
			r.Left = append(r.Left, &vfs.UnwipedError{Path: path, Ino: ino, Err: vfs.ErrLinked})
		}
		left, werr := t.file.Wipe()
		if werr != nil {
			err = errors.Join(err, fl.Engine.Env.IOError("overwriting", path, werr))
		}
		if now, serr := fl.Engine.Env.FS.Stat(path); left && (serr != nil || now.Ino != t.info.Ino) {
			r.Unlinked = append(r.Unlinked, t.name)
		}
	}
	return err
}

// indexHas says whether an inode is still in its place, or is a backup of the index.
func (fl *Flusher) indexHas(path string, ino uint64) bool {
	if now, err := fl.Engine.Env.FS.Stat(path); err == nil && now.Ino == ino {
		return true
	}
	list, err := index.Backups(fl.Engine.Env.FS, fl.Engine.Env.Dir)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(list, func(b index.Backup) bool {
		info, err := fl.Engine.Env.FS.Stat(filepath.Join(fl.Engine.Env.Dir, filepath.FromSlash(b.Name)))
		return err == nil && info.Ino == ino
	})
}
