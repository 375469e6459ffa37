package commit

import (
	"context"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
)

// OlderComposite returns the composite embedding of an assembly that was last written under an older embedding
// model, computed from the current vectors of its members. If no member has or had a vector, a user has set
// the composite: it is returned unchanged if it has the dimension of model, else nil.
func (cm *Committer) OlderComposite(ctx context.Context, model *index.Model, p *engine.Parsed) ([]float32, error) {
	counted := false
	var failed error
	composite, _ := assembly.Composite(model.Dimension, func(yield func([]float32) bool) {
		for _, id := range p.Members {
			v, own, err := cm.countingVector(ctx, model, id)
			if failed = err; err != nil {
				return
			}
			counted = counted || own || len(v) > 0
			if !yield(v) {
				return
			}
		}
	})
	switch {
	case failed != nil:
		return nil, failed
	case counted:
		return composite, nil
	case len(p.Vector) == model.Dimension:
		return p.Vector, nil
	}
	return nil, nil
}

// countingVector returns the current vector of the newest version of a memory: the vector that replaces its
// embedding if the embedding is by the previous model, and otherwise the embedding itself. hasVector reports
// whether the document has an embedding, by any model.
func (cm *Committer) countingVector(ctx context.Context, model *index.Model,
	id string) (v []float32, hasVector bool, err error) {
	j := cm.Joint(ctx)
	j.Load = cm.engine.Settled
	own, known, err := j.stored(id)
	if err != nil {
		return nil, false, err
	}
	v, older, err := cm.vectors.NewestVector(ctx, model, id)
	if err != nil || older {
		return v, known && len(own) > 0, err
	}
	return own, len(own) > 0, nil
}
