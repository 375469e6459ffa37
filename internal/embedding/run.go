package embedding

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/template"
	"github.com/varve-db/varve/internal/view/vectors"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/vector"
	"github.com/varve-db/varve/wal"
)

// reembed is the state of one call of Reembed. The call computes the vectors (compute), processes changes that were
// made meanwhile, switches the model (switch.go), and rewrites the documents (write.go).
type reembed struct {
	em     *Embedding
	maker  *maker
	o      Options
	file   *vectors.Computed
	report Report

	refused map[string]refused // memories whose content the embedder refuses
	taken   string             // a text that the embedder has accepted in this run
	// dimension of the embedder's vectors, requested if no content has determined it; 0: not requested yet
	makes int
}

func (r *reembed) tell() {
	if r.o.Progress != nil {
		r.o.Progress(&r.report)
	}
}

func (r *reembed) run(ctx context.Context) (err error) {
	em := r.em
	if r.report.Total, err = em.engine.Count(ctx, engine.Filters{}); err != nil {
		return err
	}
	if r.maker, err = em.next(ctx); err != nil {
		return err
	}
	if model := em.vectors.Model(); model.Switching() {
		done, err := r.goOn(ctx, model)
		if err != nil || done {
			return err
		}
	}
	if err := r.announce(ctx); err != nil {
		return err
	}
	defer r.hold(false)
	for try := range purgeTries {
		if err = r.compute(ctx, r.o.Restart && try == 0); !errors.Is(err, errPurged) {
			break
		}
	}
	defer func() {
		if r.file != nil {
			err = errors.Join(err, r.file.F.Close())
		}
	}()
	if err != nil {
		return err
	}
	r.hold(false)
	return r.finish(ctx)
}

// purgeTries is the maximum number of attempts of a re-embedding to compute the vectors. An attempt fails if a purge
// removes the file of computed vectors.
const purgeTries = 3

// compute computes the vectors of all memories and switches the store's model to the embedder's.
func (r *reembed) compute(ctx context.Context, restart bool) (err error) {
	em := r.em
	if r.file != nil {
		_ = r.file.F.Close() // what was in it is overwritten
	}
	if r.file, err = em.vectors.OpenComputed(r.maker.name, restart); err != nil {
		return err
	}
	r.report.Resumed, r.report.Computed, r.report.Changed = r.file.Count, 0, 0
	r.tell()
	if err := r.computeAll(ctx); err != nil {
		return err
	}
	if err := r.askAgain(ctx); err != nil {
		return err
	}
	if err := r.standing(ctx, func(context.Context) error { return nil }); err != nil {
		return err
	}
	if err := r.file.End(); err != nil {
		return em.engine.Env().IOError("writing", em.vectors.ComputedPath(vectors.ComputedName), err)
	}
	return r.change(ctx)
}

// hold(true) makes this process stop embedding memories that are put, because the embedder's model is not the store's
// model. hold(false) ends this.
func (r *reembed) hold(held bool) {
	e := r.em
	e.mu.Lock()
	was := e.held
	if e.held = held; was && !held {
		e.err = nil // ends the wait of the background
	}
	e.mu.Unlock()
	if was && !held {
		r.em.kickEmbedding()
	}
}

// announce records in the log the model of the vectors that are being computed. From then on, no process stores vectors
// of this model among those of the present model.
func (r *reembed) announce(ctx context.Context) error {
	em, name := r.em, r.maker.name
	for range engine.FindTries {
		m := em.vectors.Model()
		if name != "" && m.Name == name {
			return nil // this embedder's vectors are like the current ones
		}
		if name == "" || template.Model(m.Name) != em.config.Model {
			r.hold(true)
		} // otherwise puts are embedded with the current template
		if name == "" || m.Next == name {
			return nil
		}
		c := vectors.ChangeOfModel(&m)
		c.Next = name
		if err := em.vectors.SetModel(ctx, m, c, 0); !errors.Is(err, errs.ErrConflict) {
			return err
		}
		if err := em.engine.CatchUp(ctx); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: gave up: other processes keep changing the model", errs.ErrConflict)
}

// computeAll computes the vectors of the memories that sort after the last memory in the file of computed vectors.
func (r *reembed) computeAll(ctx context.Context) error {
	em := r.em
	if r.file.Ended {
		return nil
	}
	for after, more := r.file.Last, true; more; {
		var ids []string
		more = false
		if err := em.engine.CatchUp(ctx); err != nil {
			return err
		}
		// Kept short, because it holds the index.
		for id, err := range em.engine.IDs(ctx, em.engine.Kinds().Memories, engine.Filters{After: after}) {
			if err != nil {
				if id == "" || ctx.Err() != nil {
					return err
				}
				continue
			}
			if ids = append(ids, id); len(ids) == em.config.Batch {
				more = true
				break
			}
		}
		if len(ids) == 0 {
			return nil
		}
		after = ids[len(ids)-1]
		list, err := r.computeSome(ctx, ids, nil)
		if err != nil {
			return err
		}
		r.report.Computed += int64(len(list))
		r.tell()
	}
	return nil
}

// contented is the text of a memory with content, and the version of that memory.
type contented struct {
	said
	version wal.LSN
}

// contented returns the texts of the memories that have content. The keys of the map are the ids of the memories.
func (r *reembed) contented(ctx context.Context, ids []string) (map[string]contented, error) {
	all, versions := map[string]contented{}, map[*memstore.Memory]wal.LSN{}
	var list []*memstore.Memory
	err := r.em.eachOf(ctx, ids, func(m *memstore.Memory, at wal.LSN) {
		if vectors.Embeddable(m.Content) {
			list = append(list, m)
			versions[m] = at
		}
	})
	if err != nil {
		return nil, err
	}
	says, err := r.em.texts(ctx, r.maker.template, list, nil)
	for _, m := range list {
		all[m.ID] = contented{said{r.maker.template.Own(m), says[m]}, versions[m]}
	}
	return all, err
}

// computeSome computes the vectors of memories, appends them to the file of computed vectors, and returns them.
// hashes has, by memory id, the hash of a text whose vector the file already has. computeSome skips a memory if
// hashes has the hash of the memory's present text, or if the embedder has refused this text.
func (r *reembed) computeSome(ctx context.Context, ids []string,
	hashes map[string][32]byte) ([]vectors.ComputedVector, error) {
	em := r.em
	all, err := r.contented(ctx, ids)
	if err != nil {
		return nil, err
	}
	texts := map[string]said{}
	for id, c := range all {
		is := sha256.Sum256([]byte(c.own))
		if sum, ok := hashes[id]; (!ok || sum != is) && !r.refuses(id, is) {
			texts[id] = c.said
		}
	}
	if len(texts) == 0 {
		return nil, nil
	}
	vecs, err := r.embed(ctx, texts, true)
	if err != nil {
		return nil, err
	}
	var list []vectors.ComputedVector
	for _, id := range ids {
		c, ok := texts[id]
		if v := vecs[c.text]; ok && v != nil {
			list = append(list, vectors.ComputedVector{ID: id, Version: all[id].version, Sum: sha256.Sum256([]byte(c.own)),
				Vector: v})
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	if n := len(list[0].Vector); r.file.Dim != 0 && n != r.file.Dim {
		return nil, &errs.FieldError{Field: "embeddings of " + human.Quote(r.maker.name),
			Value: fmt.Sprintf("of %d dimensions", n),
			Limit: fmt.Sprintf("%d dimensions, like the vectors of an earlier run", r.file.Dim),
			Err:   fmt.Errorf("%w: to discard the vectors computed so far, run memctl reindex --restart", vector.ErrDimension)}
	}
	if err := r.file.Add(list); err != nil {
		return nil, em.engine.Env().IOError("writing", em.vectors.ComputedPath(vectors.ComputedName), err)
	}
	return list, nil
}

// batches calls f with successive parts of ids, each of the embedder's batch size.
func (r *reembed) batches(ids []string, f func(ids []string) error) error {
	for part := range slices.Chunk(ids, r.em.config.Batch) {
		if err := f(part); err != nil {
			return err
		}
	}
	return nil
}
