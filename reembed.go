package varve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/view/vectors"
)

// ReembedOptions says how. The zero value is right.
type ReembedOptions struct {
	Anew     bool // forget what an earlier run with this model has computed
	Progress func(ReembedReport)
}

// ReembedReport says what was done, or is done so far.
type ReembedReport struct {
	Total    int64 // memories with a content, about
	Resumed  int64 // vectors that an earlier run had computed
	Computed int64 // by this one
	Written  int64 // memories that got another embedding
	Changed  int64 // embeddings computed once more, for the content had changed

	// When it has ended: memories whose content the embedder does not take. They have
	// no embedding, and get one when it takes it, or another content.
	Refused  int64
	Refusals []Refusal // the first of them
}

// Reembed gives every memory that has a content an embedding by the embedder, as
// after a change of the model, also to one of another dimension. Others may use the
// store meanwhile.
//
// The vectors are computed first, into a file beside the store's vectors. Until all
// of them are there the old ones serve, and processes whose EmbedModel is the new
// one store what is put without a vector: it is embedded with the rest. Then one
// entry of the log changes the model, for all processes at once: from there on every
// search is by the new vectors, all of them, wherever the documents are; processes
// whose EmbedModel is another one leave memories pending. Then the memories are
// rewritten, in batches, each on condition that its content is what the vector was
// made of; their updated_at stays. The store's dimension and model stand in
// config.json afterwards.
//
// A content that the embedder refuses, while it takes others, leaves its memory without
// an embedding, pending: the report names it, and the next Reembed, EmbedPending or
// another content has it asked again.
//
// When it ends early (ctx, an error, a crash) the next call with the same
// EmbedModel goes on where it was; one with another model goes on too, if the store
// had changed to the one before, and begins its own then. One call at a time:
// ErrLocked. A memory without a content keeps its embedding, and where that has
// another dimension it is not found by it any more.
//
// Where no memory has a content the model is changed all the same. If no document has a
// vector either, the embedder is asked for one, and its dimension becomes the store's:
// a store that was emptied keeps the one that it had until then.
func (st *Store) Reembed(ctx context.Context, o ReembedOptions) (*ReembedReport, error) {
	if err := st.engine.Begun(); err != nil {
		return nil, err
	}
	defer st.engine.Ended()
	if err := st.engine.Writable(); err != nil {
		return nil, err
	}
	if st.o.Embed == nil {
		return nil, &errs.FieldError{Field: "Embed", Err: fmt.Errorf("%w: the store was opened without an embedder", errs.ErrInvalid)}
	}
	unlock, err := st.lockComputed()
	if err != nil {
		return nil, err
	}
	r := &reembed{st: st, o: o}
	err = r.run(ctx)
	r.tellRefused()
	return &r.report, errors.Join(err, unlock())
}

// lockComputed makes this the only call.
func (st *Store) lockComputed() (unlock func() error, err error) {
	dir := filepath.Join(st.engine.Env.Dir, vectors.VectorFolder)
	if err := st.engine.Env.FS.Mkdir(dir, st.engine.Env.FolderMode); err == nil {
		err = st.engine.Env.FS.SyncDir(st.engine.Env.Dir)
		if err != nil {
			return nil, st.engine.Env.IOError("making", dir, err)
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return nil, st.engine.Env.IOError("making", dir, err)
	}
	path := st.vectors.ComputedPath(vectors.ComputedLock)
	lock, err := st.engine.Env.FS.OpenLock(path, st.engine.Env.FileMode)
	if err != nil {
		return nil, st.engine.Env.IOError("opening", path, err)
	}
	switch ok, err := lock.TryLock(vfs.ModeExclusive); {
	case err != nil:
		return nil, errors.Join(st.engine.Env.IOError("locking", path, err), lock.Close())
	case !ok:
		return nil, errors.Join(fmt.Errorf("%w: embeddings are being made anew already", errs.ErrLocked), lock.Close())
	}
	return func() error { return errors.Join(lock.Unlock(), lock.Close()) }, nil
}
