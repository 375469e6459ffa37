package embedding

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/view/vectors"
)

// Options are the options of Reembed.
type Options struct {
	Restart  bool // discard what an earlier run with this model has computed
	Progress func(*Report)
}

// Report is the result of Reembed, or its progress so far.
type Report struct {
	Total    int64     // approximate number of memories with content
	Resumed  int64     // vectors that an earlier run had computed
	Computed int64     // vectors that this run computed
	Written  int64     // memories that got a new embedding
	Changed  int64     // embeddings computed again because the content changed
	Refused  int64     // memories whose content the embedder refuses
	Refusals []Refusal // the first refusals, at most mostRefusals
}

var errNone = &errs.FieldError{Field: "Embed",
	Err: fmt.Errorf("%w: the store was opened without an embedder", errs.ErrInvalid)}

// Reembed computes an embedding with the embedder for every memory that has content, and switches the store to the
// embedder's model.
func (em *Embedding) Reembed(ctx context.Context, o Options) (*Report, error) {
	if em.config.Call == nil {
		return nil, errNone
	}
	unlock, err := em.LockComputed()
	if err != nil {
		return nil, err
	}
	r := &reembed{em: em, o: o}
	err = r.run(ctx)
	r.tellRefused()
	return &r.report, errors.Join(err, unlock())
}

// LockComputed takes the lock that only one re-embedding at a time may hold. It fails with errs.ErrLocked if
// another run has it.
func (em *Embedding) LockComputed() (unlock func() error, err error) {
	dir := filepath.Join(em.engine.Env().Dir, vectors.VectorFolder)
	if err := em.engine.Env().FS.Mkdir(dir, em.engine.Env().FolderMode); err == nil {
		err = em.engine.Env().FS.SyncDir(em.engine.Env().Dir)
		if err != nil {
			return nil, em.engine.Env().IOError("making", dir, err)
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return nil, em.engine.Env().IOError("making", dir, err)
	}
	path := em.vectors.ComputedPath(vectors.ComputedLock)
	lock, err := em.engine.Env().FS.OpenLock(path, em.engine.Env().FileMode)
	if err != nil {
		return nil, em.engine.Env().IOError("opening", path, err)
	}
	switch ok, err := lock.TryLock(vfs.ModeExclusive); {
	case err != nil:
		return nil, errors.Join(em.engine.Env().IOError("locking", path, err), lock.Close())
	case !ok:
		return nil, errors.Join(fmt.Errorf("%w: another reindex is running", errs.ErrLocked), lock.Close())
	}
	return func() error { return errors.Join(lock.Unlock(), lock.Close()) }, nil
}
