package varve

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/view/vectors"
	"github.com/varve-db/varve/vector"
	"github.com/varve-db/varve/wal"
)

// hasVectors says whether operations write any.
func hasVectors(ops []op) bool {
	return slices.ContainsFunc(ops, func(o op) bool { return o.memory != nil && len(o.memory.Embedding) > 0 })
}

// renew gives a memory that is about to be written, and has brought the vector of
// an older model along, the one that counts instead, or none. What its version was
// decoded with, or the stored one has, is not what anybody says today.
func (cm *committer) renew(ctx context.Context, o *op, model *index.Model) error {
	m := o.memory
	if model.Since == 0 || m == nil || len(m.Embedding) == 0 || o.derived || o.made {
		return nil
	}
	kept := m.Version != 0 && m.Version < model.Since && m.KeepsEmbedding()
	if !kept && (o.id == "" || !model.Switching()) {
		return nil
	}
	var stored *Memory
	old := false
	if o.id != "" {
		v, err := cm.engine.Load(ctx, cm.engine.Kinds.Memories, o.id)
		if err == nil {
			if d, err := cm.engine.Decode(o.id, v); err == nil {
				stored, old = &d, model.Older(v.LSN, v.Line.VectorNumber())
			}
		} else if cerr := ctx.Err(); cerr != nil {
			return cerr
		}
	}
	if !kept && !(old && slices.Equal(stored.Embedding, m.Embedding)) || !vectors.Embeddable(m.Content) {
		return nil
	}
	if stored != nil && !old && stored.Content == m.Content {
		setEmbedding(m, stored.Embedding)
		return nil
	}
	v, _, err := cm.vectors.ComputedFor(ctx, model, o.id, sha256.Sum256([]byte(m.Content)))
	if err != nil {
		return err
	}
	if len(v) != model.Dimension {
		v = nil
	}
	setEmbedding(m, v)
	o.waits = v == nil
	return nil
}

// fitVectors holds the embeddings of operations to the store's dimension. Where no
// vector has decided it yet, the first of them does, on condition that nothing was
// committed since; where one in the log has, on condition that it is still there: so
// two processes cannot decide two. The zero Precondition is none.
func (cm *committer) fitVectors(ctx context.Context, ops []op, model *index.Model) (on wal.Precondition, err error) {
	dim := -1
	for i := range ops {
		m := ops[i].memory
		if m != nil && ops[i].made && cm.suits(model) != nil {
			setEmbedding(m, nil) // the model was changed while the embedder was asked
			ops[i].made, ops[i].waits = false, true
		}
		if err := cm.renew(ctx, &ops[i], model); err != nil {
			return on, err
		}
		if m == nil || len(m.Embedding) == 0 {
			continue
		}
		if dim < 0 {
			if dim, on, err = cm.vectors.Dimension(ctx); err != nil {
				return on, err
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
func (cm *committer) fitVector(ctx context.Context, o *op, dim int) error {
	if o.conds.misfit {
		return nil
	}
	m := o.memory
	if o.id != "" {
		if v, err := cm.engine.Load(ctx, cm.engine.Kinds.Memories, o.id); err == nil {
			if old, err := cm.engine.Decode(o.id, v); err == nil && slices.Equal(old.Embedding, m.Embedding) {
				return nil
			}
		}
	}
	n := len(m.Embedding)
	if !cm.fit {
		return cm.vectors.OtherDimension("embedding", n, dim)
	}
	fitted := make([]float32, dim)
	copy(fitted, m.Embedding)
	m.Embedding = fitted
	note := fmt.Sprintf("%d dimensions padded to %d", n, dim)
	if n > dim {
		note = fmt.Sprintf("%d dimensions cut to %d", n, dim)
	}
	cm.engine.Env.Logger.Warn("an embedding did not fit", "id", m.ID, "what", note)
	cm.engine.Env.Event(env.Event{Kind: env.EventFitted, ID: m.ID, Note: note, Count: n})
	return nil
}
