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

// looked is what was found out about the dimension.
type looked struct {
	of  engine.Tables // of the index that was asked
	at  wal.LSN       // up to where there is no vector
	dim int           // 0: none
	by  decider       // zero where the index decided
}

// decider is what has decided the dimension in the log, while no index says it: it holds
// no longer than that.
type decider struct {
	key    string
	pos    wal.LSN // its newest version
	number int64   // of its vector
	alone  bool    // no vector of another dimension was seen
}

// A store that has been emptied keeps its dimension: the next put did not ask for another one.
var errOtherDimension = fmt.Errorf("%w: memctl reindex changes the model of all embeddings", vector.ErrDimension)

// OtherDimension refuses a vector of another dimension than the store's, and says
// what is going on where the store's model is being changed.
func (vs *Vectors) OtherDimension(field string, got, dim int) error {
	err := error(&errs.FieldError{Field: field, Value: fmt.Sprintf("of %d dimensions", got),
		Limit: fmt.Sprintf("%d dimensions, as the store's", dim), Err: errOtherDimension})
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

// Dimension is the store's, 0 while no vector has decided it, and on what condition
// that is so.
func (vs *Vectors) Dimension(ctx context.Context) (dim int, on wal.Precondition, err error) {
	model := vs.Model()
	if d := vs.DecidedDimension(&model); d != 0 {
		return d, on, nil
	}
	vs.Mu.Lock()
	defer vs.Mu.Unlock()
	for range engine.FindTries {
		if err := vs.engine.CatchUp(ctx); err != nil {
			return 0, on, err
		}
		at := vs.engine.Log().Applied()
		err := vs.findDimension(ctx)
		switch {
		case err == nil && vs.looked.dim != 0:
			return vs.looked.dim, vs.looked.by.precondition(), nil
		case err == nil:
			vs.looked.at = max(vs.looked.at, at) // an index that was mapped meanwhile may be ahead of it
			return 0, wal.Precondition{LSN: at}, nil
		case !errors.Is(err, ErrBehind) && !errors.Is(err, errs.ErrTruncated) && !errors.Is(err, engine.ErrMoved):
			return 0, on, err
		}
		_ = vs.engine.Refresh()
	}
	return 0, on, fmt.Errorf("looking for the store's dimension: %w", ErrBehind)
}

func (d *decider) precondition() wal.Precondition {
	if d.key == "" {
		return wal.Precondition{}
	}
	return wal.Precondition{Key: d.key, LSN: d.pos}
}

// stillDecides reports whether what decided still does, and follows it to its newest version.
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

// decidedDimension is what a switch of the model or, later, config.json has decided.
func decidedDimension(model *index.Model, config int) int {
	if model.Since != 0 && (model.Switching() || config == 0) {
		return model.Dimension
	}
	return config
}

// DecidedDimension is the dimension that the model or config.json says, 0 if neither does.
func (vs *Vectors) DecidedDimension(model *index.Model) int {
	d := vs.engine.Settings().Now().VectorSettings().Dimension
	return decidedDimension(model, d)
}

// findDimension looks for the dimension: once for each index, and as long as that
// names none in what came since; vs.mu is held.
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

// filesDimension is what the index says, or, where it says nothing, the vectors
// that stand, or the lines; and where these are from before there were vectors,
// the documents.
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
