package varve

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/varve-db/varve/internal/vfs"
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
	Changed  int64 // of them: those whose content had changed since it was computed
}

// Reembed gives every memory that has a content an embedding by the embedder, as
// after a change of the model. The vectors are computed first, into a file beside
// the store's vectors; until all of them are there the old ones serve. Then the
// memories are rewritten, in batches, each on condition that its content is what
// the vector was made of; those that have changed are embedded again.
//
// When it ends early (ctx, an error, a crash) the next call with the same
// EmbedModel goes on where it was. Others may use the store meanwhile; a process
// that still writes with the old model is not noticed. One call at a time:
// ErrLocked. A model of another dimension than the store's is refused.
func (st *Store) Reembed(ctx context.Context, o ReembedOptions) (*ReembedReport, error) {
	if err := st.begun(); err != nil {
		return nil, err
	}
	defer st.ended()
	if err := st.writable(); err != nil {
		return nil, err
	}
	if st.o.Embed == nil {
		return nil, &FieldError{Field: "Embed", Err: fmt.Errorf("%w: the store was opened without an embedder", ErrInvalid)}
	}
	unlock, err := st.lockComputed()
	if err != nil {
		return nil, err
	}
	r := &reembed{st: st, o: o}
	err = r.run(ctx)
	return &r.report, errors.Join(err, unlock())
}

// lockComputed makes this the only call.
func (st *Store) lockComputed() (unlock func() error, err error) {
	dir := filepath.Join(st.dir, vectorFolder)
	if err := st.fs.Mkdir(dir, st.o.FolderMode); err == nil {
		err = st.fs.SyncDir(st.dir)
		if err != nil {
			return nil, st.ioError("making", dir, err)
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return nil, st.ioError("making", dir, err)
	}
	path := st.computedPath(computedLock)
	lock, err := st.fs.OpenLock(path, st.o.FileMode)
	if err != nil {
		return nil, st.ioError("opening", path, err)
	}
	switch ok, err := lock.TryLock(vfs.ModeExclusive); {
	case err != nil:
		return nil, errors.Join(st.ioError("locking", path, err), lock.Close())
	case !ok:
		return nil, errors.Join(fmt.Errorf("%w: embeddings are being made anew already", ErrLocked), lock.Close())
	}
	return func() error { return errors.Join(lock.Unlock(), lock.Close()) }, nil
}

type reembed struct {
	st     *Store
	o      ReembedOptions
	file   *computed
	report ReembedReport
}

func (r *reembed) tell() {
	if r.o.Progress != nil {
		r.o.Progress(r.report)
	}
}

func (r *reembed) run(ctx context.Context) (err error) {
	st := r.st
	if r.report.Total, err = st.Count(ctx); err != nil {
		return err
	}
	if r.file, err = st.openComputed(st.o.EmbedModel, r.o.Anew); err != nil {
		return err
	}
	r.report.Resumed = r.file.count
	r.tell()
	err = r.compute(ctx)
	if err == nil {
		err = r.file.end()
	}
	if err == nil {
		err = r.file.all(st.o.EmbedBatch, func(list []computedVector) error { return r.write(ctx, list) })
	}
	if cerr := r.file.f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return st.dropComputed()
}

// compute makes the vectors of what is listed behind the last one that is there.
func (r *reembed) compute(ctx context.Context) error {
	st := r.st
	if r.file.ended {
		return nil
	}
	for after, more := r.file.last, true; more; {
		var ids []string
		more = false
		if err := st.sight(ctx); err != nil {
			return err
		}
		for id, err := range st.ids(ctx, st.memories, filters{after: after}) { // not longer than needed: it holds the index
			if err != nil {
				if id == "" || ctx.Err() != nil {
					return err
				}
				continue
			}
			if ids = append(ids, id); len(ids) == st.o.EmbedBatch {
				more = true
				break
			}
		}
		if len(ids) == 0 {
			return nil
		}
		after = ids[len(ids)-1]
		if err := r.computeSome(ctx, ids); err != nil {
			return err
		}
	}
	return nil
}

func (r *reembed) computeSome(ctx context.Context, ids []string) error {
	contents, err := r.st.contents(ctx, ids, func(m *Memory) bool { return embeddable(m.Content) })
	if err != nil || len(contents) == 0 {
		return err
	}
	known, err := r.st.embedContents(ctx, contents)
	if err != nil {
		return err
	}
	var list []computedVector
	for _, id := range ids {
		if text, ok := contents[id]; ok {
			list = append(list, computedVector{id, sha256.Sum256([]byte(text)), known[text]})
		}
	}
	if err := r.fits(ctx, len(list[0].vector)); err != nil {
		return err
	}
	if err := r.file.add(list); err != nil {
		return r.st.ioError("writing", r.st.computedPath(computedName), err)
	}
	r.report.Computed += int64(len(list))
	r.tell()
	return nil
}

// fits refuses a model of another dimension: its vectors could not be found
// beside the old ones.
func (r *reembed) fits(ctx context.Context, dim int) error {
	if r.file.dim == dim {
		return nil
	}
	if r.file.dim == 0 {
		is, _, err := r.st.dimension(ctx)
		if err != nil {
			return err
		}
		if r.file.dim = is; is == 0 {
			r.file.dim = dim
		}
	}
	if r.file.dim != dim {
		return &FieldError{Field: "embeddings of " + quote(r.st.o.EmbedModel), Value: fmt.Sprintf("of %d dimensions", dim),
			Limit: fmt.Sprintf("%d dimensions, which the store's have", r.file.dim),
			Err:   fmt.Errorf("%w: a model of another dimension needs a new store: export this one without its embeddings and import it there", ErrInvalid)}
	}
	return nil
}

// write gives memories the vectors that were computed for them, or others when
// their contents have changed.
func (r *reembed) write(ctx context.Context, list []computedVector) error {
	ids := make([]string, len(list))
	vectors := map[string]computedVector{}
	for i, v := range list {
		ids[i], vectors[v.id] = v.id, v
	}
	for len(ids) > 0 {
		var changed []string
		_, err := r.st.inParts(ids, func(ids []string) (int64, error) {
			n, others, err := r.writeSome(ctx, ids, vectors)
			if err == nil {
				changed = append(changed, others...)
				r.report.Written += n
				r.tell()
			}
			return n, err
		})
		if err != nil {
			return err
		}
		if ids = changed; len(ids) == 0 {
			return nil
		}
		contents, err := r.st.contents(ctx, ids, func(m *Memory) bool { return embeddable(m.Content) })
		if err != nil {
			return err
		}
		known, err := r.st.embedContents(ctx, contents)
		if err != nil {
			return err
		}
		for id, text := range contents {
			vectors[id] = computedVector{id, sha256.Sum256([]byte(text)), known[text]}
		}
		r.report.Changed += int64(len(ids))
	}
	return nil
}

// writeSome does so in one commit, and says which have changed.
func (r *reembed) writeSome(ctx context.Context, ids []string, vectors map[string]computedVector) (n int64, changed []string, err error) {
	err = r.st.transact(ctx, nil, func(tx *Tx) error {
		changed, n = nil, 0
		for _, id := range ids {
			m, err := tx.Get(id)
			switch {
			case errors.Is(err, ErrNotFound):
				continue
			case errors.Is(err, ErrCorrupt):
				continue // verify reports it
			case err != nil:
				return err
			case !embeddable(m.Content):
				continue
			case sha256.Sum256([]byte(m.Content)) != vectors[id].sum:
				changed = append(changed, id)
				continue
			case slices.Equal(m.Embedding, vectors[id].vector):
				continue
			}
			setEmbedding(&m, vectors[id].vector)
			tx.put(&m, conditions{unlimited: true})
			n++
		}
		return nil
	})
	return n, changed, err
}
