package varve

import (
	"context"
	"errors"
	"fmt"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/vector"
	"github.com/varve-db/varve/wal"
)

// looked is up to where no vector was found.
type looked struct {
	of tables
	at wal.LSN
}

// fitVectors holds the embeddings of operations to the store's dimension. Where no
// vector has decided it yet, the first of them does, on condition that nothing was
// committed since listed: so two processes cannot decide two. listed is 0 where
// there is nothing to be held to.
func (st *Store) fitVectors(ctx context.Context, ops []op) (listed wal.LSN, err error) {
	dim := -1
	for i := range ops {
		m := ops[i].memory
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
		if err := st.fitVector(m, dim); err != nil {
			if len(ops) > 1 {
				err = &BatchError{Index: i, Key: ops[i].id, Err: err}
			}
			return 0, err
		}
	}
	return listed, nil
}

// fitVector refuses an embedding that does not fit, or makes it fit where that is
// wanted. What is in the caller's hands is not written to.
func (st *Store) fitVector(m *Memory, dim int) error {
	if err := vector.CheckFinite("embedding", m.Embedding); err != nil {
		return err
	}
	n := len(m.Embedding)
	if n == dim {
		return nil
	}
	if !st.o.VectorFit {
		return &FieldError{Field: "embedding", Value: fmt.Sprintf("of %d dimensions", n), Limit: fmt.Sprintf("%d dimensions, as the store's", dim), Err: ErrDimension}
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

// dimension is the store's, 0 while no vector has decided it, and then up to where
// that is so.
func (st *Store) dimension(ctx context.Context) (int, wal.LSN, error) {
	st.config.mu.Lock()
	d := st.config.c.vectors().Dimension
	st.config.mu.Unlock()
	if d != 0 {
		return d, 0, nil
	}
	v := &st.vectors
	if d := v.dim.Load(); d != 0 {
		return int(d), 0, nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for range findTries {
		if err := st.sight(ctx); err != nil {
			return 0, 0, err
		}
		at := st.log.Applied()
		d, err := st.findDimension(ctx)
		switch {
		case err == nil && d != 0:
			v.dim.Store(int64(d))
			return d, 0, nil
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

// findDimension looks for a vector: in the files and the index, once for each
// index, and in what came since.
func (st *Store) findDimension(ctx context.Context) (int, error) {
	v := &st.vectors
	idx := st.state.Set()
	if idx == nil {
		return 0, ErrClosed
	}
	defer idx.Release()
	if v.looked.of != tablesOf(idx) {
		if v.looked.at < idx.LSN() {
			if d, err := st.filesDimension(ctx, idx); d != 0 || err != nil {
				return d, err
			}
			v.looked.at = idx.LSN()
		}
		v.looked.of = tablesOf(idx)
	}
	list := st.state.Changes(v.looked.at, 1<<62)
	if st.state.From() > max(v.looked.at, idx.LSN()) {
		return 0, errBehind
	}
	r := st.log.Reader()
	for _, c := range list {
		e, err := r.At(ctx, c.Pos)
		if err != nil {
			return 0, err
		}
		if _, ok := vectorKind(e.Key[0]); !ok || e.Delete {
			continue
		}
		rec, err := record.Parse(e.Value)
		if err != nil {
			return 0, fmt.Errorf("entry %d: %w", e.LSN, err)
		}
		if rec.Dims() != 0 {
			return rec.Dims(), nil
		}
	}
	return 0, nil
}

// filesDimension is what the vectors that stand have, or else what the index says,
// and where that says nothing, for it is from before there were vectors, the
// documents.
func (st *Store) filesDimension(ctx context.Context, idx *index.Set) (int, error) {
	at, known := index.Vectors(idx)
	if known && at == 0 {
		return 0, nil
	}
	set, _ := st.loadVectors(nil)
	if set != nil {
		d := set.Dim()
		if err := set.Release(); err != nil || d != 0 {
			return d, err
		}
	}
	p := &vectorPlan{st: st, ctx: ctx, idx: idx, set: vector.Empty(), dims: map[int]int{}}
	for kind := range p.edits {
		if err := p.compare(vector.Kind(kind), nil); err != nil {
			return 0, err
		}
	}
	return p.commonest(), nil
}
