package varve

import (
	"errors"
	"path/filepath"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/vfs"
)

// oldIndex is what the index is made of before it is written without what is purged.
type oldIndex []oldTable

type oldTable struct {
	name string
	file *vfs.Doomed // nil: nobody could tell whether it is mapped
	info vfs.Info
}

// doomIndex takes hold of base and delta: who still has them mapped must not read
// zeros, and that is known only when their names are gone.
func (st *Store) doomIndex() (oldIndex, error) {
	var old oldIndex
	for _, name := range []string{index.BaseName, index.DeltaName} {
		path := filepath.Join(st.dir, name)
		info, err := st.fs.Stat(path)
		if err != nil {
			continue
		}
		f, err := vfs.Doom(st.fs, path)
		if err != nil {
			return old, errors.Join(st.ioError("opening", path, err), old.close())
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
		path := filepath.Join(st.dir, t.name)
		left, werr := t.file.Wipe()
		if werr != nil {
			err = errors.Join(err, st.ioError("overwriting", path, werr))
		}
		if now, serr := st.fs.Stat(path); left && (serr != nil || now.Ino != t.info.Ino) {
			r.Unlinked = append(r.Unlinked, t.name)
		}
	}
	return err
}
