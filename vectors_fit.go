package varve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/vector"
	"github.com/varve-db/varve/wal"
)

// looked is what was found out about the dimension.
type looked struct {
	of  tables  // of the index that was asked
	at  wal.LSN // up to where there is no vector
	dim int     // 0: none
	by  decider // zero where the index decided
}

// decider is what has decided the dimension in the log, while no index says it: it holds
// no longer than that.
type decider struct {
	key    string
	pos    wal.LSN // its newest version
	number int64   // of its vector
	alone  bool    // no vector of another dimension was seen
}

// fitVectors holds the embeddings of operations to the store's dimension. Where no
// vector has decided it yet, the first of them does, on condition that nothing was
// committed since; where one in the log has, on condition that it is still there: so
// two processes cannot decide two. The zero Precondition is none.
func (st *Store) fitVectors(ctx context.Context, ops []op, model *index.Model) (on wal.Precondition, err error) {
	dim := -1
	for i := range ops {
		m := ops[i].memory
		if m != nil && ops[i].made && st.suits(model) != nil {
			setEmbedding(m, nil) // the model was changed while the embedder was asked
			ops[i].made, ops[i].waits = false, true
		}
		if err := st.renew(ctx, &ops[i], model); err != nil {
			return on, err
		}
		if m == nil || len(m.Embedding) == 0 {
			continue
		}
		if dim < 0 {
			if dim, on, err = st.dimension(ctx); err != nil {
				return on, err
			}
		}
		if dim == 0 {
			dim = len(m.Embedding)
		}
		err := vector.CheckFinite("embedding", m.Embedding)
		if err == nil && len(m.Embedding) != dim {
			err = st.fitVector(ctx, &ops[i], dim)
		}
		if err != nil && len(ops) > 1 {
			err = &errs.BatchError{Index: i, Key: ops[i].id, Err: err}
		}
		if err != nil {
			return on, err
		}
	}
	return on, nil
}

// fitVector refuses an embedding of another dimension, or makes it fit where that
// is wanted. One that the memory has already, from a file or an import, may stay.
// What is in the caller's hands is not written to.
func (st *Store) fitVector(ctx context.Context, o *op, dim int) error {
	if o.conds.misfit {
		return nil
	}
	m := o.memory
	if o.id != "" {
		if v, err := st.load(ctx, st.kinds.memories, o.id); err == nil {
			if old, err := st.decode(o.id, v); err == nil && slices.Equal(old.Embedding, m.Embedding) {
				return nil
			}
		}
	}
	n := len(m.Embedding)
	if !st.o.VectorFit {
		return st.otherDimension("embedding", n, dim)
	}
	fitted := make([]float32, dim)
	copy(fitted, m.Embedding)
	m.Embedding = fitted
	note := fmt.Sprintf("%d dimensions padded to %d", n, dim)
	if n > dim {
		note = fmt.Sprintf("%d dimensions cut to %d", n, dim)
	}
	st.env.Logger.Warn("an embedding did not fit", "id", m.ID, "what", note)
	st.env.Event(env.Event{Kind: env.EventFitted, ID: m.ID, Note: note, Count: n})
	return nil
}

// A store that has been emptied keeps its dimension: whoever puts the next memory has
// not said that he wants another one.
var errOtherDimension = fmt.Errorf(`%w: another model, and its dimension, come with memctl reindex (Reembed); where no embedding is left, also with "vectors": {"dimension": N} in config.json`, vector.ErrDimension)

// otherDimension refuses a vector of another dimension than the store's, and says
// what is going on where the store's model is being changed.
func (st *Store) otherDimension(field string, got, dim int) error {
	err := error(&errs.FieldError{Field: field, Value: fmt.Sprintf("of %d dimensions", got), Limit: fmt.Sprintf("%d dimensions, as the store's", dim), Err: errOtherDimension})
	model := st.vectorsBy()
	if model.Next == "" && !model.Switching() {
		return err
	}
	e := &ModelError{Model: model.Name, Dimension: dim, Got: got, Next: model.Next, Err: err}
	if model.Switching() {
		e.Since = model.Since
	}
	return e
}

// dimension is the store's, 0 while no vector has decided it, and on what condition
// that is so.
func (st *Store) dimension(ctx context.Context) (dim int, on wal.Precondition, err error) {
	model := st.vectorsBy()
	if d := st.decidedDimension(&model); d != 0 {
		return d, on, nil
	}
	v := &st.vectors
	v.mu.Lock()
	defer v.mu.Unlock()
	for range findTries {
		if err := st.sight(ctx); err != nil {
			return 0, on, err
		}
		at := st.log.Applied()
		err := st.findDimension(ctx)
		switch {
		case err == nil && v.looked.dim != 0:
			return v.looked.dim, v.looked.by.precondition(), nil
		case err == nil:
			v.looked.at = at
			return 0, wal.Precondition{LSN: at}, nil
		case !errors.Is(err, errBehind) && !errors.Is(err, errs.ErrTruncated) && !errors.Is(err, errMoved):
			return 0, on, err
		}
		_ = st.refresh()
	}
	return 0, on, fmt.Errorf("looking for the store's dimension: %w", errBehind)
}

func (d *decider) precondition() wal.Precondition {
	if d.key == "" {
		return wal.Precondition{}
	}
	return wal.Precondition{Key: d.key, LSN: d.pos}
}

// stillDecides says whether what decided still does, and follows it to its newest version.
func (st *Store) stillDecides(ctx context.Context, d *decider, dim int) (bool, error) {
	if d.key == "" {
		return true, nil
	}
	place, err := st.state.Find(d.key[0], d.key[1:])
	switch {
	case err == nil && place.Version == d.pos:
		return true, nil
	case err != nil && !errors.Is(err, errs.ErrNotFound):
		return false, err
	case err != nil || !place.InLog:
		return false, nil
	}
	e, err := st.log.ReadAt(ctx, place.Version)
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

func (st *Store) decidedDimension(model *index.Model) int {
	d := st.settings.Now().VectorSettings().Dimension
	return decidedDimension(model, d)
}

// findDimension looks for the dimension: once for each index, and as long as that
// names none in what came since; v.mu is held.
func (st *Store) findDimension(ctx context.Context) error {
	l := &st.vectors.looked
	idx := st.state.Set()
	if idx == nil {
		return errs.ErrClosed
	}
	defer idx.Release()
	if of := tablesOf(idx); l.of != of {
		dim, err := st.filesDimension(ctx, idx)
		if err != nil {
			return err
		}
		*l = looked{of: of, at: idx.LSN(), dim: dim}
		st.vectors.known.Store(int64(dim))
	}
	if l.dim != 0 {
		ok, err := st.stillDecides(ctx, &l.by, l.dim)
		if ok || err != nil {
			return err
		}
		l.dim = 0
	}
	list := st.state.Changes(l.at, 1<<62)
	if st.state.From() > l.at {
		return errBehind
	}
	dims, deciders := dimensions{}, map[int]decider{}
	r := st.log.Reader()
	for _, c := range list {
		e, err := r.At(ctx, c.Pos)
		if err != nil {
			return err
		}
		if _, ok := vectorKind(e.Key[0]); !ok || e.Delete {
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
	st.vectors.known.Store(int64(l.dim))
	return nil
}

// filesDimension is what the index says, or, where it says nothing, the vectors
// that stand, or the lines; and where these are from before there were vectors,
// the documents.
func (st *Store) filesDimension(ctx context.Context, idx *index.Set) (int, error) {
	if _, dim, known := index.Vectors(idx); known {
		return dim, nil
	}
	set, _ := st.loadVectors(nil)
	if set != nil {
		d := set.Dim()
		if err := set.Release(); err != nil || d != 0 {
			return d, err
		}
	}
	p := &vectorPlan{st: st, ctx: ctx, idx: idx, set: vector.Empty(), dims: dimensions{}}
	for kind := range p.edits {
		if err := p.compare(vector.Kind(kind), nil); err != nil {
			return 0, err
		}
	}
	return p.decide()
}
