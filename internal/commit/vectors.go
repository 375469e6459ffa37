package commit

import (
	"context"
	"fmt"
	"slices"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/template"
	"github.com/varve-db/varve/internal/view/vectors"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/vector"
	"github.com/varve-db/varve/wal"
)

// hasVectors reports whether any operation writes a vector.
func hasVectors(ops []Op) bool {
	return slices.ContainsFunc(ops, func(o Op) bool { return o.Memory != nil && len(o.Memory.Embedding) > 0 })
}

// RefreshVector handles a vector by an older embedding model in a memory that is about to be written: it replaces the
// vector by the current vector, or removes it. Such a vector was decoded with the memory, or is the stored vector; the
// caller has not set it.
func (cm *Committer) RefreshVector(ctx context.Context, o *Op, model *index.Model) error {
	m := o.Memory
	if model.Since == 0 || m == nil || len(m.Embedding) == 0 || o.Derived || o.EmbeddedHere {
		return nil
	}
	kept := m.Version != 0 && m.Version < model.Since && m.KeepsEmbedding()
	if !kept && (o.ID == "" || !model.Switching()) {
		return nil
	}
	var stored *memstore.Memory
	old := false
	if o.ID != "" {
		v, err := cm.engine.Load(ctx, cm.engine.Kinds().Memories, o.ID)
		if err == nil {
			if d, err := cm.engine.Decode(o.ID, v); err == nil {
				stored, old = &d, model.Older(v.LSN, v.Line.VectorNumber())
			}
		} else if cerr := ctx.Err(); cerr != nil {
			return cerr
		}
	}
	if !kept && !(old && slices.Equal(stored.Embedding, m.Embedding)) || !vectors.Embeddable(m.Content) {
		return nil
	}
	sum := vectors.SumOf(model, m)
	if stored != nil && !old && vectors.SumOf(model, stored) == sum {
		SetEmbedding(m, stored.Embedding)
		return nil
	}
	v, _, err := cm.vectors.ComputedFor(ctx, model, o.ID, sum)
	if err != nil {
		return err
	}
	if len(v) != model.Dimension {
		v = nil
	}
	SetEmbedding(m, v)
	o.NeedsEmbedding = v == nil
	return nil
}

// suits returns an error if vectors of the embedder may not be stored now, because the store's vectors are by
// another model or were made with another template. name is the name that the store would give to the embedder's
// model.
func (cm *Committer) suits(model *index.Model, name string) error {
	if err := cm.host.Suits(model); err != nil {
		return err
	}
	if template.Of(name).String() != template.Of(model.Name).String() {
		return &errs.ModelError{Model: model.Name, Other: name, Next: model.Next}
	}
	return nil
}

// fitVectors verifies that the embeddings of the operations have the store's dimension, and returns the
// precondition cond for the commit. If no vector has decided the dimension yet, the first of the embeddings
// decides it, on the condition that nothing was committed since. If a vector in the log has decided the dimension,
// the condition is that this vector still exists. So two processes cannot decide on two dimensions. The zero
// Precondition means no condition.
func (cm *Committer) fitVectors(ctx context.Context, ops []Op, model *index.Model) (cond wal.Precondition, err error) {
	dim := -1
	for i := range ops {
		m := ops[i].Memory
		if m != nil && ops[i].EmbeddedHere && cm.suits(model, ops[i].EmbeddedBy) != nil {
			SetEmbedding(m, nil) // the model was changed while the embedder was running
			ops[i].EmbeddedHere, ops[i].NeedsEmbedding = false, true
		}
		if err := cm.RefreshVector(ctx, &ops[i], model); err != nil {
			return cond, err
		}
		if m == nil || len(m.Embedding) == 0 {
			continue
		}
		if dim < 0 {
			if dim, cond, err = cm.vectors.Dimension(ctx); err != nil {
				return cond, err
			}
		}
		if dim == 0 {
			dim = len(m.Embedding)
		}
		err := vector.CheckFinite("embedding", m.Embedding)
		if err == nil && len(m.Embedding) != dim {
			err = cm.fitVector(ctx, &ops[i], dim)
		}
		if err != nil && len(ops) > 1 {
			err = &errs.BatchError{Index: i, Key: ops[i].ID, Err: err}
		}
		if err != nil {
			return cond, err
		}
	}
	return cond, nil
}

// fitVector returns an error for an embedding whose dimension is not dim, or, if the settings say so, pads or cuts the
// embedding. An embedding that the memory already has, from a file or an import, may stay as it is. fitVector does not
// modify slices that belong to the caller.
func (cm *Committer) fitVector(ctx context.Context, o *Op, dim int) error {
	if o.Conds.Misfit {
		return nil
	}
	m := o.Memory
	if o.ID != "" {
		v, err := engine.Version{}, error(nil)
		if o.follows != nil {
			v, err = o.follows.base, o.follows.err
		} else {
			v, err = cm.engine.Load(ctx, cm.engine.Kinds().Memories, o.ID)
		}
		if err == nil {
			if old, err := cm.engine.Decode(o.ID, v); err == nil && slices.Equal(old.Embedding, m.Embedding) {
				return nil
			}
		}
	}
	n := len(m.Embedding)
	if !cm.fit {
		return cm.vectors.OtherDimension("embedding", n, dim)
	}
	m.Embedding = Fit(m.Embedding, dim)
	note := fmt.Sprintf("%d dimensions padded to %d", n, dim)
	if n > dim {
		note = fmt.Sprintf("%d dimensions cut to %d", n, dim)
	}
	cm.engine.Env().Logger.Warn("an embedding was padded or cut to the store's dimension", "id", m.ID, "what", note)
	cm.engine.Env().Event(env.Event{Kind: env.EventFitted, ID: m.ID, Note: note, Count: n})
	return nil
}

// Fit returns v as a vector of dim dimensions: v itself, or a copy of v that is cut or padded with zeros.
func Fit(v []float32, dim int) []float32 {
	if len(v) == dim {
		return v
	}
	fitted := make([]float32, dim)
	copy(fitted, v)
	return fitted
}

// SetEmbedding sets the vector of a memory; nil removes it. If it replaces a vector, SetEmbedding also updates what is
// derived from the vector.
func SetEmbedding(m *memstore.Memory, v []float32) {
	if len(m.Embedding) > 0 && len(m.HyperbolicEmbedding) > 0 {
		m.HyperbolicEmbedding = nil
		if v != nil {
			m.HyperbolicEmbedding = memstore.Hyperbolic(v)
		}
	}
	m.Embedding = slices.Clone(v)
}
