package embedding

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/view/vectors"
)

// goOn continues an earlier re-embedding that was interrupted after it had switched the store to model. If the present
// run has the same model, goOn completes the earlier run and returns true. Otherwise goOn stores the vectors that the
// earlier run had computed, and returns false: the present run embeds all memories, also those for which the earlier
// run computed no vector.
func (r *reembed) goOn(ctx context.Context, model index.Model) (done bool, err error) {
	em := r.em
	if r.file, err = em.vectors.OpenComputed(model.Name, false); err != nil {
		return false, err
	}
	r.report.Resumed = r.file.Count
	defer func() {
		if r.file != nil {
			err = errors.Join(err, r.file.F.Close())
			r.file = nil
		}
	}()
	if r.maker.name == model.Name {
		return true, r.finish(ctx)
	}
	if err := r.settleConfig(ctx); err != nil {
		return false, err
	}
	return false, r.rewrite(ctx, &model)
}

// finish rewrites the documents that still have vectors of the previous model, and records in the log that no such
// documents are left.
func (r *reembed) finish(ctx context.Context) error {
	em := r.em
	model := em.vectors.Model()
	if !model.Switching() {
		if err := r.settleName(ctx, &model); err != nil {
			return err
		}
		return r.forget(ctx)
	}
	if err := r.settleConfig(ctx); err != nil {
		return err
	}
	if err := r.rewrite(ctx, &model); err != nil {
		return err
	}
	// Memories without a vector are processed once: a process with the previous model may put more of them as long as
	// it runs. The number of those with a vector of the previous model only falls.
	for pending := true; ; pending = false {
		n, err := r.rest(ctx, &model, pending)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
	}
	c := vectors.ChangeOfModel(&model)
	c.Done = true
	if err := em.vectors.SetModel(ctx, model, c, 0); err != nil {
		return err
	}
	em.kickEmbedding()
	return r.forget(ctx)
}

// forget removes the file of computed vectors. It takes flush.lock, because another process may still be rebuilding
// vectors from the file.
func (r *reembed) forget(ctx context.Context) error {
	held, err := r.em.engine.Log().LockFlush(ctx)
	if err != nil {
		return err
	}
	defer held.Unlock()
	err = r.file.F.Close()
	r.file = nil
	return errors.Join(err, r.em.vectors.Computed().Close(), r.em.vectors.DropComputed())
}

// rewrite stores the computed vectors in the memories for which they were computed.
func (r *reembed) rewrite(ctx context.Context, model *index.Model) error {
	return r.file.All(r.em.config.Batch, func(list []vectors.ComputedVector) error {
		var ids []string
		vectors := map[string]vectors.ComputedVector{}
		for _, v := range list {
			if _, ok := vectors[v.ID]; !ok {
				ids = append(ids, v.ID)
			}
			vectors[v.ID] = v // the last record counts
		}
		_, err := r.write(ctx, model, ids, vectors)
		return err
	})
}

// rest embeds the memories whose vectors are not in the file of computed vectors: memories that were changed after the
// computation, and, if pending is true, memories without a vector. It returns the number of memories that it wrote.
func (r *reembed) rest(ctx context.Context, model *index.Model, pending bool) (n int64, err error) {
	em := r.em
	if err := em.engine.CatchUp(ctx); err != nil {
		return 0, err
	}
	var ids []string
	for l, err := range em.engine.Lines(ctx, em.engine.Kinds().Memories, engine.Filters{}) {
		if err != nil {
			if l.ID == "" || ctx.Err() != nil {
				return 0, err
			}
			continue
		}
		switch dim := l.Line.Dimension; {
		case dim == 0 && !pending:
		case dim <= 0, model.Older(l.Line.Version, l.Line.VectorNumber()): // below 0: unknown
			ids = append(ids, l.ID)
		}
	}
	err = r.batches(ids, func(ids []string) error {
		m, err := r.restOf(ctx, model, ids)
		n += m
		return err
	})
	return n, err
}

func (r *reembed) restOf(ctx context.Context, model *index.Model, ids []string) (int64, error) {
	em := r.em
	all, err := r.contented(ctx, ids)
	if err != nil {
		return 0, err
	}
	vecs, texts := map[string]vectors.ComputedVector{}, map[string]said{}
	for _, id := range ids {
		c, ok := all[id]
		if !ok {
			continue
		}
		sum := sha256.Sum256([]byte(c.own))
		v, ok, err := em.vectors.ComputedFor(ctx, model, id, sum)
		if err != nil {
			return 0, err
		}
		if ok || r.refuses(id, sum) { // if refused, its embedding by an older model is removed
			vecs[id] = vectors.ComputedVector{ID: id, Sum: sum, Vector: v}
		} else {
			texts[id] = c.said
		}
	}
	known, err := r.embed(ctx, texts, false)
	if err != nil {
		return 0, err
	}
	for id, c := range texts { // nil if refused now
		vecs[id] = vectors.ComputedVector{ID: id, Sum: sha256.Sum256([]byte(c.own)), Vector: known[c.text]}
	}
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { _, ok := vecs[id]; return !ok })
	n, err := r.write(ctx, model, ids, vecs)
	r.report.Changed += min(n, int64(len(texts)))
	return n, err
}

// write stores computed vectors in memories, in one commit if possible, and returns the number of memories that it
// wrote.
func (r *reembed) write(ctx context.Context, model *index.Model, ids []string,
	vectors map[string]vectors.ComputedVector) (int64, error) {
	if len(ids) == 0 {
		return 0, nil
	}
	n, err := r.em.inParts(ids, func(ids []string) (int64, error) { return r.writeSome(ctx, model, ids, vectors) })
	if err != nil {
		return n, err
	}
	r.report.Written += n
	r.tell()
	return n, nil
}

// writeSome stores the vectors of the memories that still have the same content and have no vector of the new model.
func (r *reembed) writeSome(ctx context.Context, model *index.Model, ids []string,
	computed map[string]vectors.ComputedVector) (n int64, err error) {
	em := r.em
	err = em.Transact(ctx, nil, func(tx *commit.Tx) error {
		n = 0
		puts := 0
		if now := em.vectors.Model(); now.LSN != model.LSN {
			return fmt.Errorf("%w: another process changed the model", errs.ErrConflict)
		}
		for _, id := range ids {
			v, err := tx.Load(em.engine.Kinds().Memories, id)
			switch {
			case errors.Is(err, errs.ErrNotFound), errors.Is(err, errs.ErrCorrupt):
				continue // verify reports a damaged one
			case err != nil:
				return err
			}
			m, err := em.engine.Decode(id, v)
			switch {
			case err != nil:
				continue
			case len(m.Embedding) > 0 && !model.Older(v.LSN, v.Line.VectorNumber()):
				continue // another write was faster
			case vectors.SumOf(model, &m) != computed[id].Sum, slices.Equal(m.Embedding, computed[id].Vector):
				continue
			}
			commit.SetEmbedding(&m, computed[id].Vector)
			tx.PutEmbedded(&m)
			if puts++; len(m.Embedding) > 0 {
				n++
			}
		}
		if puts == 0 {
			return errs.ErrSkip
		}
		return tx.See(state.ModelKey, model.LSN)
	})
	return n, err
}
