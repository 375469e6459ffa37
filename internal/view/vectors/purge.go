package vectors

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
	"github.com/varve-db/varve/wal"
)

// PurgeComputed removes memories from the vectors that a re-embedding has computed. Before the switch of the
// model, PurgeComputed removes the whole file of computed vectors, and the re-embedding starts again. After the
// switch, searches depend on the file, so PurgeComputed replaces the file by a copy without the memories. It adds
// errors about data that could not be overwritten to failures, and the name of a file that it had to replace
// without overwriting to unlinked.
func (vs *Vectors) PurgeComputed(ctx context.Context, _ *wal.Held, ids []string, failures *[]error,
	unlinked *[]string) error {
	if model := vs.Model(); !model.Switching() {
		return vs.WipeComputed(failures)
	}
	path, old := vs.ComputedPath(ComputedName), vs.ComputedPath(ComputedOld)
	if err := vs.wipeComputedOld(path, old, failures); err != nil { // left by an interrupted purge
		return vs.engine.Env().IOError("overwriting", old, err)
	}
	f, err := vs.engine.Env().FS.OpenFile(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return vs.engine.Env().IOError("opening", path, err)
	}
	temp, err := settings.Scratch(vs.engine.Env(), ComputedName)
	if err == nil {
		err = vs.copyComputed(ctx, f, temp, ids)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return vs.engine.Env().IOError("rewriting", path, err)
	}
	// The old file keeps a name until its bytes are overwritten.
	switch err := vs.engine.Env().FS.Link(path, old); {
	case errors.Is(err, errors.ErrUnsupported):
		*unlinked = append(*unlinked, VectorFolder+"/"+ComputedName)
	case err != nil:
		return vs.engine.Env().IOError("linking", path, err)
	}
	err = vs.engine.Env().FS.Rename(temp, path)
	if err == nil {
		err = vs.engine.Env().FS.SyncDir(filepath.Dir(path))
	}
	if err == nil {
		err = vfs.Unwiped(failures, vfs.Wipe(vs.engine.Env().FS, old))
	}
	return errors.Join(vs.engine.Env().IOError("replacing", path, err), vs.side.Close())
}

// wipeComputedOld overwrites and removes the file old, which a purge has replaced by the file at path. If both paths
// lead to the same file, because the purge was interrupted before it replaced the file, wipeComputedOld only removes
// the name old. It adds an error about a file that cannot be overwritten to left.
func (vs *Vectors) wipeComputedOld(path, old string, left *[]error) error {
	if vfs.SameFile(vs.engine.Env().FS, path, old) {
		return vs.engine.Env().FS.Remove(old)
	}
	return vfs.Unwiped(left, vfs.Wipe(vs.engine.Env().FS, old))
}

// copyComputed copies the complete records of from, the file of computed vectors, to the new file temp. It omits the
// records of the memories whose ids are in without.
func (vs *Vectors) copyComputed(ctx context.Context, from vfs.File, temp string, without []string) error {
	to, err := vs.engine.Env().FS.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, vs.engine.Env().FileMode)
	if err != nil {
		return err
	}
	in, out := &Computed{F: from}, &Computed{F: to}
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
		var v ComputedVector
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
