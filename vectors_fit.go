package varve

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/vector"
	"github.com/varve-db/varve/wal"
)

// looked is what was found out about the dimension.
type looked struct {
	of  tables  // of the index that was asked
	at  wal.LSN // up to where there is no vector
	dim int     // 0: none
}

// fitVectors holds the embeddings of operations to the store's dimension. Where no
// vector has decided it yet, the first of them does, on condition that nothing was
// committed since listed: so two processes cannot decide two. listed is 0 where
// there is nothing to be held to.
func (st *Store) fitVectors(ctx context.Context, ops []op, model *index.Model) (listed wal.LSN, err error) {
	dim := -1
	for i := range ops {
		m := ops[i].memory
		if m != nil && ops[i].made && st.suits(model) != nil {
			setEmbedding(m, nil) // the model was changed while the embedder was asked
			ops[i].made, ops[i].waits = false, true
		}
		if err := st.renew(ctx, &ops[i], model); err != nil {
			return 0, err
		}
		if m == nil || len(m.Embedding) == 0 {
			continue
		}
		if dim < 0 {
			if dim, listed, err = st.dimension(ctx); err != nil {
				return 0, err
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
			err = &BatchError{Index: i, Key: ops[i].id, Err: err}
		}
		if err != nil {
			return 0, err
		}
	}
	return listed, nil
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
		if v, err := st.load(ctx, st.memories, o.id); err == nil {
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
	st.o.Logger.Warn("an embedding did not fit", "id", m.ID, "what", note)
	st.event(Event{Kind: EventFitted, ID: m.ID, Note: note, Count: n})
	return nil
}

// otherDimension refuses a vector of another dimension than the store's, and says
// what is going on where the store's model is being changed.
func (st *Store) otherDimension(field string, got, dim int) error {
	err := error(&FieldError{Field: field, Value: fmt.Sprintf("of %d dimensions", got), Limit: fmt.Sprintf("%d dimensions, as the store's", dim), Err: ErrDimension})
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

// dimension is the store's, 0 while no vector has decided it, and then up to where
// that is so.
func (st *Store) dimension(ctx context.Context) (int, wal.LSN, error) {
	model := st.vectorsBy()
	st.config.mu.Lock()
	d := st.config.c.vectors().Dimension
	st.config.mu.Unlock()
	if d = decidedDimension(&model, d); d != 0 {
		return d, 0, nil
	}
	v := &st.vectors
	v.mu.Lock()
	defer v.mu.Unlock()
	for range findTries {
		if err := st.sight(ctx); err != nil {
			return 0, 0, err
		}
		at := st.log.Applied()
		err := st.findDimension(ctx)
		switch {
		case err == nil && v.looked.dim != 0:
			return v.looked.dim, 0, nil
		case err == nil:
			v.looked.at = at
			return 0, at, nil
		case !errors.Is(err, errBehind) && !errors.Is(err, ErrTruncated) && !errors.Is(err, errMoved):
			return 0, 0, err
		}
		_ = st.refresh()
	}
	return 0, 0, fmt.Errorf("looking for the store's dimension: %w", errBehind)
}

// decidedDimension is what a switch of the model or, later, config.json has decided.
func decidedDimension(model *index.Model, config int) int {
	if model.Since != 0 && (model.Switching() || config == 0) {
		return model.Dimension
	}
	return config
}

// findDimension looks for the dimension: once for each index, and as long as that
// names none in what came since; v.mu is held.
func (st *Store) findDimension(ctx context.Context) error {
	l := &st.vectors.looked
	idx := st.state.Set()
	if idx == nil {
		return ErrClosed
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
		return nil
	}
	list := st.state.Changes(l.at, 1<<62)
	if st.state.From() > l.at {
		return errBehind
	}
	dims := dimensions{}
	r := st.log.Reader()
	for _, c := range list {
		e, err := r.At(ctx, c.Pos)
		if err != nil {
			return err
		}
		if _, ok := vectorKind(e.Key[0]); !ok || e.Delete {
			continue
		}
		rec, err := record.Parse(e.Value)
		if err != nil {
			return fmt.Errorf("entry %d: %w", e.LSN, err)
		}
		if n := rec.Dims(); n != 0 {
			number, err := frameNumber(&rec, e.LSN)
			if err != nil {
				return err
			}
			dims.add(n, number, e.LSN)
		}
	}
	l.dim = dims.decided()
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
