package varve

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/view/vectors"
)

// purgeComputed takes memories out of what a re-embedding has computed; flush.lock is
// held. Before the switch the run begins again; behind it searches live on the file, so
// that a copy without them takes its place.
func (st *Store) purgeComputed(ctx context.Context, ids []string, r *PurgeReport) error {
	if model := st.vectors.Model(); !model.Switching() {
		return st.vectors.WipeComputed(&r.Left)
	}
	path, old := st.vectors.ComputedPath(vectors.ComputedName), st.vectors.ComputedPath(vectors.ComputedOld)
	if err := st.wipeComputedOld(path, old, r); err != nil { // of a purge that was killed
		return st.engine.Env.IOError("overwriting", old, err)
	}
	f, err := st.engine.Env.FS.OpenFile(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return st.engine.Env.IOError("opening", path, err)
	}
	temp, err := settings.Scratch(st.engine.Env, vectors.ComputedName)
	if err == nil {
		err = st.copyComputed(ctx, f, temp, ids)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return st.engine.Env.IOError("rewriting", path, err)
	}
	// The old one keeps a name until its bytes are gone.
	switch err := st.engine.Env.FS.Link(path, old); {
	case errors.Is(err, errors.ErrUnsupported):
		r.Unlinked = append(r.Unlinked, vectors.VectorFolder+"/"+vectors.ComputedName)
	case err != nil:
		return st.engine.Env.IOError("linking", path, err)
	}
	err = st.engine.Env.FS.Rename(temp, path)
	if err == nil {
		err = st.engine.Env.FS.SyncDir(filepath.Dir(path))
	}
	if err == nil {
		err = vfs.Unwiped(&r.Left, vfs.Wipe(st.engine.Env.FS, old))
	}
	return errors.Join(st.engine.Env.IOError("replacing", path, err), st.vectors.Side.Close())
}

// wipeComputedOld overwrites and removes the old file, unless it stands in its place still.
func (st *Store) wipeComputedOld(path, old string, r *PurgeReport) error {
	if vfs.SameFile(st.engine.Env.FS, path, old) {
		return st.engine.Env.FS.Remove(old)
	}
	return vfs.Unwiped(&r.Left, vfs.Wipe(st.engine.Env.FS, old))
}

// copyComputed copies what is whole, but for some memories.
func (st *Store) copyComputed(ctx context.Context, from vfs.File, temp string, without []string) error {
	to, err := st.engine.Env.FS.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, st.engine.Env.FileMode)
	if err != nil {
		return err
	}
	in, out := &vectors.Computed{F: from}, &vectors.Computed{F: to}
	var batch [][]byte
	size := 0
	flush := func() error {
		list := batch
		batch, size = batch[:0], 0
		if len(list) == 0 {
			return nil
		}
		return out.Append(list)
	}
	_, err = in.Records(math.MaxInt64, func(p []byte) error {
		var v vectors.ComputedVector
		if p[0] == 'v' && v.Parse(p) == nil && slices.Contains(without, v.ID) {
			return nil
		}
		batch = append(batch, slices.Clone(p))
		if size += len(p); size < 1<<20 {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	return errors.Join(err, to.Close())
}
