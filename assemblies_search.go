package varve

import (
	"context"
	"errors"
	"fmt"

	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/vector"
)

// AssemblyHit is an assembly that was found.
type AssemblyHit struct {
	ID       string
	Score    float64 // as Hit's
	Assembly Assembly
}

// Search finds assemblies by their composite embeddings: those nearest to
// q.Vector, or to the composite of the assembly q.Like, without itself. A Query
// with Text is refused; assemblies have no text that is searched.
func (as Assemblies) Search(ctx context.Context, q Query) ([]AssemblyHit, error) {
	if err := q.validate(); err != nil {
		return nil, err
	}
	if q.Text != "" {
		return nil, &errs.FieldError{Field: "query Text", Err: fmt.Errorf("%w: assemblies are found by Vector and by Like", errs.ErrInvalid)}
	}
	st := as.st
	if err := st.engine.Begun(); err != nil {
		return nil, err
	}
	defer st.engine.Ended()
	if q.Like != "" {
		a, err := as.Get(ctx, q.Like)
		if err != nil {
			return nil, err
		}
		model := st.vectors.Model()
		if q.Vector, err = st.vectors.EmbeddingNow(ctx, &model, st.engine.Kinds.Assemblies, a.ID, a.Version, a.CompositeEmbedding); err != nil {
			return nil, err
		}
		if len(q.Vector) == 0 {
			return nil, &errs.FieldError{Field: "query Like", Value: errs.Quote(q.Like), Err: fmt.Errorf("%w: this assembly has no composite embedding", errs.ErrInvalid)}
		}
		if vector.Norm(q.Vector) == 0 {
			return nil, &errs.FieldError{Field: "query Like", Value: errs.Quote(q.Like), Err: fmt.Errorf("%w: the composite of this assembly is all zero, which is like nothing: its members need embeddings that are not (memctl reindex)", errs.ErrInvalid)}
		}
	}
	v := vector.Query{Kind: vector.Assemblies, Vector: q.Vector, Limit: q.Offset + q.limit(), MinScore: q.MinScore, Workers: st.scanners()}
	if q.Like != "" {
		v.Accept = func(id string) (bool, error) { return id != q.Like, nil }
	}
	found, err := st.searchVectors(ctx, v, q.Model)
	if err != nil {
		return nil, err
	}
	var hits []AssemblyHit
	var bad unreadable
	for _, h := range found[min(q.Offset, len(found)):] {
		a, err := as.Get(ctx, h.Key)
		switch {
		case errors.Is(err, errs.ErrClosed), ctx.Err() != nil:
			return nil, err
		case errors.Is(err, errs.ErrNotFound):
		case err != nil:
			bad.add(err)
		default:
			hits = append(hits, AssemblyHit{h.Key, h.Score, a})
		}
	}
	return hits, bad.join()
}
