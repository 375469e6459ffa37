package varve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/view/vectors"
	"github.com/varve-db/varve/vector"
)

// oldIndex is what the index is made of before it is written without what is purged.
type oldIndex []oldTable

type oldTable struct {
	name string
	file *vfs.Doomed // nil: nobody could tell whether it is mapped
	info vfs.Info
}

// doomIndex takes hold of base and delta, and of the vectors: who still has them
// mapped must not read zeros, and that is known only when their names are gone.
func (st *Store) doomIndex(ctx context.Context) (oldIndex, error) {
	if err := st.vectors.Lock.Lock(ctx); err != nil {
		return nil, err
	}
	err := st.vectors.Close() // our own
	st.vectors.Lock.Unlock()
	if err != nil {
		return nil, err
	}
	var old oldIndex
	for _, name := range append([]string{index.BaseName, index.DeltaName}, vector.Files()...) {
		path := filepath.Join(st.engine.Env.Dir, name)
		info, err := st.engine.Env.FS.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return old, errors.Join(st.engine.Env.IOError("looking at", path, err), old.close())
		}
		f, err := vfs.Doom(st.engine.Env.FS, path, filepath.Join(st.engine.Env.Dir, filepath.FromSlash(purgeFolder), filepath.Base(name)+docfile.DoomedSuffix), true)
		if err != nil {
			return old, errors.Join(st.engine.Env.IOError("opening", path, err), old.close())
		}
		old = append(old, oldTable{name, f, info})
	}
	return old, nil
}

// close lets go what may have kept its name.
func (o oldIndex) close() (err error) {
	for _, t := range o {
		err = errors.Join(err, t.file.Close())
	}
	return err
}

// wipe overwrites what has lost its name since. What is a backup now is written
// again as one.
func (o oldIndex) wipe(st *Store, r *PurgeReport) (err error) {
	for _, t := range o {
		path := filepath.Join(st.engine.Env.Dir, t.name)
		if ino := t.file.Named(); ino != 0 && !st.indexHas(path, ino) {
			r.Left = append(r.Left, &vfs.UnwipedError{Path: path, Ino: ino, Err: vfs.ErrLinked})
		}
		left, werr := t.file.Wipe()
		if werr != nil {
			err = errors.Join(err, st.engine.Env.IOError("overwriting", path, werr))
		}
		if now, serr := st.engine.Env.FS.Stat(path); left && (serr != nil || now.Ino != t.info.Ino) {
			r.Unlinked = append(r.Unlinked, t.name)
		}
	}
	return err
}

// indexHas says whether an inode is still in its place, or is a backup of the index.
func (st *Store) indexHas(path string, ino uint64) bool {
	if now, err := st.engine.Env.FS.Stat(path); err == nil && now.Ino == ino {
		return true
	}
	list, err := index.Backups(st.engine.Env.FS, st.engine.Env.Dir)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(list, func(b index.Backup) bool {
		info, err := st.engine.Env.FS.Stat(filepath.Join(st.engine.Env.Dir, filepath.FromSlash(b.Name)))
		return err == nil && info.Ino == ino
	})
}

// purgedVectors names what of some documents is still in the vectors: they could
// not be written again.
func (st *Store) purgedVectors(k *engine.Kind, ids []string, r *PurgeReport) error {
	set, why := st.vectors.Load(nil)
	if set == nil {
		return why
	}
	defer func() { _ = set.Release() }()
	if of, ok := vectors.KindOf(k.Letter); ok && why == nil {
		for _, id := range ids {
			n, err := set.ID(of, id)
			if err != nil {
				why = err
				break
			}
			if n != 0 {
				why = fmt.Errorf("vector %d of %s is still there", n, errs.Quote(id))
				break
			}
		}
	}
	if why != nil {
		r.Left = append(r.Left, fmt.Errorf("%s may hold vectors of what was purged: run memctl repair --apply, then purge again: %w", vector.Folder, why))
	}
	return nil
}
