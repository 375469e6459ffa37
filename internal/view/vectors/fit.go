package vectors

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/vector"
	"github.com/varve-db/varve/wal"
)

// looked records what the last search for the dimension of the store's vectors has found.
type looked struct {
	of  engine.Tables // base and delta of the index that was searched
	at  wal.LSN       // log position below which the store has no vector
	dim int           // the dimension; 0: none
	by  decider       // the document that determines it; zero if the index does
}

// decider is the document whose vector determines the store's dimension. It is used while no index records the
// dimension, so the document is in the log.
type decider struct {
	key    string
	pos    wal.LSN // newest version of the document
	number int64   // number of its vector
	alone  bool    // no vector of another dimension has been seen
}

// errOtherDimension is the advice in an error about a vector of another dimension than the store's. A store keeps its
// dimension even after its last vector is deleted, so that the next put does not change the dimension by accident.
var errOtherDimension = fmt.Errorf("%w: to change the model of all embeddings, run memctl reindex", vector.ErrDimension)

// OtherDimension returns the error for a vector whose dimension differs from the store's dimension. field is the name
// that the error uses for the vector. While the store's model is being changed, the error is an *errs.ModelError that
// describes the change.
func (vs *Vectors) OtherDimension(field string, got, dim int) error {
	err := error(&errs.FieldError{Field: field, Value: fmt.Sprintf("of %d dimensions", got),
		Limit: fmt.Sprintf("%d dimensions, like the store's vectors", dim), Err: errOtherDimension})
	model := vs.Model()
	if model.Next == "" && !model.Switching() {
		return err
	}
	e := &errs.ModelError{Model: model.Name, Dimension: dim, Got: got, Next: model.Next, Err: err}
	if model.Switching() {
		e.Since = model.Since
	}
	return e
}

// Dimension returns the dimension of the store's vectors, or 0 if no vector has determined a dimension yet. pre is
// the precondition for a commit that relies on this result: the commit fails if the result is no longer valid.
func (vs *Vectors) Dimension(ctx context.Context) (dim int, pre wal.Precondition, err error) {
	model := vs.Model()
	if d := vs.DecidedDimension(&model); d != 0 {
		return d, pre, nil
	}
	vs.Mu.Lock()
	defer vs.Mu.Unlock()
	for range engine.FindTries {
		if err := vs.engine.CatchUp(ctx); err != nil {
			return 0, pre, err
		}
		at := vs.engine.Log().Applied()
		err := vs.findDimension(ctx)
		switch {
		case err == nil && vs.looked.dim != 0:
			return vs.looked.dim, vs.looked.by.precondition(), nil
		case err == nil:
			vs.looked.at = max(vs.looked.at, at) // a newer index that was mapped meanwhile may be ahead of at
			return 0, wal.Precondition{LSN: at}, nil
		case !errors.Is(err, ErrBehind) && !errors.Is(err, errs.ErrTruncated) && !errors.Is(err, engine.ErrMoved):
			return 0, pre, err
		}
		_ = vs.engine.Refresh()
	}
	return 0, pre, fmt.Errorf("looking for the dimension of the store's vectors: %w", ErrBehind)
}

func (d *decider) precondition() wal.Precondition {
	if d.key == "" {
		return wal.Precondition{}
	}
	return wal.Precondition{Key: d.key, LSN: d.pos}
}

// stillDecides reports whether the document d still determines the dimension dim. It updates d to the document's
// newest version.
func (vs *Vectors) stillDecides(ctx context.Context, d *decider, dim int) (bool, error) {
	if d.key == "" {
		return true, nil
	}
	place, err := vs.engine.State().Find(d.key[0], d.key[1:])
	switch {
	case err == nil && place.Version == d.pos:
		return true, nil
	case err != nil && !errors.Is(err, errs.ErrNotFound):
		return false, err
	case err != nil || !place.InLog:
		return false, nil
	}
	e, err := vs.engine.Log().ReadAt(ctx, place.Version)
	if err != nil {
		return false, err
	}
	rec, err := state.Read(&e)
	if err != nil {
		return false, fmt.Errorf("entry %d: %w", e.LSN, err)
	}
	if rec.Dims() != dim {
		return false, nil
	}
	number, err := frameNumber(&rec, e.LSN)
	if err != nil || number != d.number && !d.alone {
		return false, err
	}
	d.pos, d.number = e.LSN, number
	return true, nil
}

// decidedDimension returns the dimension that the last switch of the model set, or the dimension config from
// config.json. During a switch the dimension of the model applies, otherwise that of config.json if it is not 0. The
// result is 0 if neither sets a dimension.
func decidedDimension(model *index.Model, config int) int {
	if model.Since != 0 && (model.Switching() || config == 0) {
		return model.Dimension
	}
	return config
}

// DecidedDimension returns the dimension that the model or config.json sets, or 0 if neither does.
func (vs *Vectors) DecidedDimension(model *index.Model) int {
	d := vs.engine.Settings().Now().VectorSettings().Dimension
	return decidedDimension(model, d)
}

// findDimension finds the dimension of the store's vectors and stores it in vs.looked. If the index was replaced since
// the last call, it first looks for the dimension in the new index. If the index does not determine the dimension,
// findDimension looks in the log entries after the index. The caller holds vs.Mu.
func (vs *Vectors) findDimension(ctx context.Context) error {
	l := &vs.looked
	idx := vs.engine.State().Set()
	if idx == nil {
		return errs.ErrClosed
	}
	defer idx.Release()
	if of := engine.TablesOf(idx); l.of != of {
		dim, err := vs.filesDimension(ctx, idx)
		if err != nil {
			return err
		}
		*l = looked{of: of, at: idx.LSN(), dim: dim}
		vs.Known.Store(int64(dim))
	}
	if l.dim != 0 {
		ok, err := vs.stillDecides(ctx, &l.by, l.dim)
		if ok || err != nil {
			return err
		}
		l.dim = 0
	}
	list := vs.engine.State().Changes(l.at, 1<<62)
	if vs.engine.State().From() > l.at {
		return ErrBehind
	}
	dims, deciders := dimensions{}, map[int]decider{}
	r := vs.engine.Log().Reader()
	for _, c := range list {
		e, err := r.At(ctx, c.Pos)
		if err != nil {
			return err
		}
		if _, ok := KindOf(e.Key[0]); !ok || e.Delete {
			continue
		}
		rec, err := state.Read(&e)
		if err != nil {
			return fmt.Errorf("entry %d: %w", e.LSN, err)
		}
		if n := rec.Dims(); n != 0 {
			number, err := frameNumber(&rec, e.LSN)
			if err != nil {
				return err
			}
			was := dims[n]
			if dims.add(n, number, e.LSN); was.n == 0 || dims[n].oldest < was.oldest {
				deciders[n] = decider{key: strings.Clone(e.Key), pos: e.LSN, number: number}
			}
		}
	}
	l.dim = dims.decided()
	l.by = deciders[l.dim]
	l.by.alone = len(dims) == 1
	vs.Known.Store(int64(l.dim))
	return nil
}

// filesDimension returns the dimension that the index idx records. If idx records none, the vector files determine the
// dimension. If there are no vector files, the lines of the index determine it, and if these lines are from before
// vectors were recorded, the documents do.
func (vs *Vectors) filesDimension(ctx context.Context, idx *index.Set) (int, error) {
	if _, dim, known := index.Vectors(idx); known {
		return dim, nil
	}
	set, _ := vs.Load(nil)
	if set != nil {
		d := set.Dim()
		if err := set.Release(); err != nil || d != 0 {
			return d, err
		}
	}
	p := &vectorPlan{st: vs, ctx: ctx, idx: idx, set: vector.Empty(), dims: dimensions{}}
	for kind := range p.edits {
		if err := p.compare(vector.Kind(kind), nil); err != nil {
			return 0, err
		}
	}
	return p.decide()
}
