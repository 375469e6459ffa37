package embedding

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/view/vectors"
	"github.com/varve-db/varve/vector"
	"github.com/varve-db/varve/wal"
)

// switchTries is the maximum number of times that a re-embedding tries to switch the model at a moment when nothing was
// committed since it last checked for changes. After that it switches even if memories were changed. Those memories
// have no vector until they are processed later.
const switchTries = 16

// change makes the computed vectors the store's vectors, with one log entry. The entry takes effect only if the
// memories are unchanged since their vectors were computed.
func (r *reembed) change(ctx context.Context) error {
	em := r.em
	have, err := r.have()
	if err != nil {
		return err
	}
	var looked wal.LSN // position up to which changes have been processed
	for try := 0; ; try++ {
		if err := em.engine.CatchUp(ctx); err != nil {
			return err
		}
		at := em.engine.Log().Applied()
		if err := r.catchUp(ctx, have, looked); err != nil {
			return err
		}
		looked = at
		model := em.vectors.Model()
		c := state.Change{Name: r.maker.name, Dimension: r.file.Dim, Switch: true}
		if r.file.Dim == 0 {
			if err := r.refusalError(); err != nil {
				return err
			}
			if c, err = r.contentless(ctx, &model); err != nil {
				return err
			}
		}
		undecided := at
		if try == switchTries {
			undecided = 0
		}
		err := r.standing(ctx, func(ctx context.Context) error { return em.vectors.SetModel(ctx, model, c, undecided) })
		if !errors.Is(err, errs.ErrConflict) {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// contentless returns the change of the embedding model for a store in which no memory has content. Vectors that are
// put from then on are made by the new model. If the store has no vector at all, contentless also changes the store's
// dimension to that of the new model; otherwise the dimension of deleted vectors would still be required.
func (r *reembed) contentless(ctx context.Context, model *index.Model) (state.Change, error) {
	em := r.em
	c := vectors.ChangeOfModel(model)
	if c.Next = ""; r.maker.name != "" {
		c.Name = r.maker.name
	}
	if any, err := em.anyRow(ctx); any || err != nil {
		return c, err
	}
	dim, _, err := em.vectors.Dimension(ctx)
	if err != nil || dim == 0 {
		return c, err // the first vector determines it
	}
	if r.makes == 0 {
		if r.makes, err = r.askDimension(ctx); err != nil {
			return c, err
		}
	}
	if r.makes == dim {
		return c, nil
	}
	return state.Change{Name: r.maker.name, Dimension: r.makes, Switch: true}, nil
}

// anyRow reports whether some document that has not expired has a vector.
func (em *Embedding) anyRow(ctx context.Context) (found bool, err error) {
	view, err := em.vectors.View(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, view.Release()) }()
	for i, k := range []*engine.Kind{em.engine.Kinds().Memories, em.engine.Kinds().Assemblies} {
		if view.Count(vector.Kind(i)) == 0 {
			continue
		}
		for l, err := range em.engine.Lines(ctx, k, engine.Filters{}) {
			if err != nil {
				return false, err
			}
			if l.Line.Dimension == 0 {
				continue
			}
			if _, _, has, err := view.Row(nil, vector.Kind(i), l.ID); has || err != nil {
				return has, err
			}
		}
	}
	return false, nil
}

// askDimension requests a vector from the embedder and returns its dimension.
func (r *reembed) askDimension(ctx context.Context) (int, error) {
	list, err := r.em.embedContents(ctx, map[string]said{"": {text: ProbeText}}, nil, forUser)
	if err != nil {
		return 0, fmt.Errorf("no memory has content, so the embedder was called with the text %s to find its "+
			"dimension: %w", human.Quote(ProbeText), err)
	}
	return len(list[ProbeText]), nil
}

// settleName writes the name of the model into config.json if the re-embedding has computed no vector: then it has
// changed only the name of the store's model.
func (r *reembed) settleName(ctx context.Context, model *index.Model) error {
	em := r.em
	c := em.engine.Settings().Now().Clone()
	v := c.VectorSettings()
	if r.file.Dim != 0 || model.Name == "" || model.Name != r.maker.name || v == (settings.VectorConfig{}) ||
		v.Model == model.Name {
		return nil
	}
	return em.UpdateVectors(ctx, func(v *settings.VectorConfig) { v.Model = model.Name })
}

// errPurged means that a purge removed the file of computed vectors, because the file had the vector of a purged
// memory.
var errPurged = errors.New("a purge removed the computed vectors")

// standing calls f under flush.lock if the file of computed vectors that this process has open is still the file at its
// path. If a purge, which holds the same lock, has replaced the file, standing returns errPurged and does not call f.
func (r *reembed) standing(ctx context.Context, f func(ctx context.Context) error) error {
	em := r.em
	held, err := em.engine.Log().LockFlush(ctx)
	if err != nil {
		return err
	}
	defer held.Unlock()
	var there vfs.Info
	mine, err := r.file.F.Stat()
	if err == nil {
		there, err = em.engine.Env().FS.Stat(em.vectors.ComputedPath(vectors.ComputedName))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && there.Ino != mine.Ino:
		return errPurged
	case err != nil:
		return em.engine.Env().IOError("looking at", em.vectors.ComputedPath(vectors.ComputedName), err)
	}
	return f(held.In(ctx))
}

// have returns the hashes of the texts whose vectors are already computed. The keys of the map are the ids of the
// memories.
func (r *reembed) have() (map[string][32]byte, error) {
	have := make(map[string][32]byte, r.file.Count)
	_, err := r.file.Records(math.MaxInt64, func(p []byte) error {
		var v vectors.ComputedVector
		if p[0] == 'v' {
			if err := v.Parse(p); err != nil {
				return err
			}
			have[v.ID] = v.Sum
		}
		return nil
	})
	if err != nil {
		return nil, r.em.engine.Env().IOError("reading", r.em.vectors.ComputedPath(vectors.ComputedName), err)
	}
	return have, nil
}

// catchUp computes the vectors of the memories that were changed since a log position. The position 0 selects all
// memories.
func (r *reembed) catchUp(ctx context.Context, have map[string][32]byte, since wal.LSN) error {
	ids, err := r.changedSince(ctx, since)
	if err != nil {
		return err
	}
	return r.batches(ids, func(ids []string) error {
		list, err := r.computeSome(ctx, ids, have)
		for _, v := range list {
			if _, ok := have[v.ID]; ok {
				r.report.Changed++
			} else {
				r.report.Computed++
			}
			have[v.ID] = v.Sum
		}
		r.tell()
		return err
	})
}

// changedSince returns the ids of the memories that were changed since a log position. If the store cannot tell which
// memories were changed, it returns the ids of all memories.
func (r *reembed) changedSince(ctx context.Context, since wal.LSN) (ids []string, err error) {
	em := r.em
	changes := em.engine.State().Changes(since, 1<<62)
	if since != 0 && em.engine.State().From() <= since {
		reader := em.engine.Log().Reader()
		for _, c := range changes {
			e, err := reader.At(ctx, c.Pos)
			if errors.Is(err, errs.ErrTruncated) {
				return r.changedSince(ctx, 0)
			}
			if err != nil {
				return nil, err
			}
			if kind.Of(e.Key) == kind.Memories && !e.Delete {
				ids = append(ids, string([]byte(e.Key[1:])))
			}
		}
		return ids, nil
	}
	for id, err := range em.engine.IDs(ctx, em.engine.Kinds().Memories, engine.Filters{}) {
		if err != nil {
			if id == "" || ctx.Err() != nil {
				return nil, err
			}
			continue
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// settleConfig writes the store's embedding model into config.json, where users can read it. A store that has lost its
// log and index is rebuilt with the model in config.json.
func (r *reembed) settleConfig(ctx context.Context) error {
	em := r.em
	model := em.vectors.Model()
	if c := em.engine.Settings().Now().Clone(); c.VectorSettings().Dimension == model.Dimension &&
		c.VectorSettings().Model == model.Name {
		return nil
	}
	return em.UpdateVectors(ctx, func(v *settings.VectorConfig) { v.Dimension, v.Model = model.Dimension, model.Name })
}

// UpdateVectors changes the vector settings in config.json. The function change gets the present settings and modifies
// them.
func (em *Embedding) UpdateVectors(ctx context.Context, change func(v *settings.VectorConfig)) error {
	return em.engine.UpdateSettings(ctx, func(c *settings.Config) error {
		v := c.VectorSettings()
		change(&v)
		c.Vectors = &v
		return nil
	})
}
