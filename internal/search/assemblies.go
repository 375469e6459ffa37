package search

import (
	"context"
	"errors"
	"fmt"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/vector"
)

// AssemblyHit is an assembly found by a search.
type AssemblyHit struct {
	ID       string
	Score    float64 // see Hit.Score
	Assembly assembly.Assembly
}

// Assemblies returns the assemblies whose composite embeddings are nearest to the query. A composite embedding is
// computed from the embeddings of an assembly's members, see package assembly.
func (s *Search) Assemblies(ctx context.Context, q Query) ([]AssemblyHit, error) {
	if err := q.validate(); err != nil {
		return nil, err
	}
	if q.Text != "" {
		return nil, &errs.FieldError{Field: "query Text",
			Err: fmt.Errorf("%w: a search for assemblies needs Vector or Like", errs.ErrInvalid)}
	}
	if q.boosts() {
		return nil, &errs.FieldError{Field: "query Recency and Importance",
			Err: fmt.Errorf("%w: a search for assemblies cannot use Recency or Importance", errs.ErrInvalid)}
	}
	if err := s.engine.BeginUse(); err != nil {
		return nil, err
	}
	defer s.engine.EndUse()
	if q.Like != "" {
		a, err := s.getAssembly(ctx, q.Like)
		if err != nil {
			return nil, err
		}
		model := s.vectors.Model()
		if q.Vector, err = s.vectors.EmbeddingNow(ctx, &model, s.engine.Kinds().Assemblies, a.ID, a.Version,
			a.CompositeEmbedding); err != nil {
			return nil, err
		}
		if len(q.Vector) == 0 {
			return nil, &errs.FieldError{Field: "query Like", Value: human.Quote(q.Like),
				Err: fmt.Errorf("%w: this assembly has no composite embedding", errs.ErrInvalid)}
		}
		if vector.Norm(q.Vector) == 0 {
			return nil, &errs.FieldError{Field: "query Like", Value: human.Quote(q.Like),
				Err: fmt.Errorf("%w: the composite embedding of this assembly is all zero, so nothing is similar to "+
					"it: give its members embeddings that are not all zero (memctl reindex)", errs.ErrInvalid)}
		}
	}
	v := vector.Query{Kind: vector.Assemblies, Vector: q.Vector, Limit: q.Offset + q.limit(), MinScore: q.MinScore,
		Workers: s.Scanners()}
	if q.Like != "" {
		v.Accept = func(id string) (bool, error) { return id != q.Like, nil }
	}
	for again := 0; ; again++ {
		found, err := s.searchVectors(ctx, v, q.Model)
		if err != nil {
			return nil, err
		}
		var hits []AssemblyHit
		var bad unreadable
		gone := 0
		for _, h := range found[min(q.Offset, len(found)):] {
			a, err := s.getAssembly(ctx, h.Key)
			switch {
			case ended(ctx, err) != nil:
				return nil, ended(ctx, err)
			case errors.Is(err, errs.ErrNotFound):
				gone++
			case err != nil:
				bad.add(err)
			default:
				hits = append(hits, AssemblyHit{h.Key, h.Score, a})
			}
		}
		if gone > 0 && len(found) == v.Limit && len(hits) < q.limit() && again < goneTries {
			v.Limit = q.Offset + q.limit() + spare(gone)
			continue
		}
		return hits[:min(len(hits), q.limit())], bad.join()
	}
}

func (s *Search) getAssembly(ctx context.Context, id string) (assembly.Assembly, error) {
	v, err := s.engine.Get(ctx, s.engine.Kinds().Assemblies, id)
	if err != nil {
		return assembly.Assembly{}, err
	}
	return s.engine.DecodeAssembly(id, v)
}
