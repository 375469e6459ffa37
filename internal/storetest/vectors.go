package storetest

import (
	"bytes"
	"context"
	"errors"
	"github.com/varve-db/varve/internal/store"
	"iter"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/vector"
)

// VectorReport is the result of CheckVectors. Each of its lists has at most mostListed entries. The id of an assembly
// has "assemblies/" before it.
type VectorReport struct {
	Vectors    int64    // number of vectors of memories
	Composites int64    // number of vectors of assemblies
	Dimension  int      // 0 if there are no vectors
	Missing    []string // the first memories whose embedding has no vector
	Stale      []string // memories whose vector is that of another memory or version
	Ghosts     []string // vectors without a memory
	Misfits    []string // memories whose embedding has another dimension, and therefore no vector
	Unread     []string // errors of documents that cannot be read
	counts     [3]int
}

// Drift returns the number of documents whose vector is missing or stale, plus the number of vectors without a
// document.
func (r *VectorReport) Drift() int { return r.counts[0] + r.counts[1] + r.counts[2] }

// mostListed is the maximum number of ids of each kind in a report.
const mostListed = 1000

func listID(list []string, id string) []string {
	if len(list) == mostListed {
		return list
	}
	return append(list, id)
}

// CheckVectors compares the embedding of every memory, and the composite embedding of every assembly, with its vector,
// bit by bit. It reads all documents. S is varve.Store.
func CheckVectors[S any](ctx context.Context, store *S) (VectorReport, error) {
	st := Inner(store)
	var r VectorReport
	if err := st.Engine.BeginUse(); err != nil {
		return r, err
	}
	defer st.Engine.EndUse()
	view, err := st.Vectors.View(ctx)
	if err != nil {
		return r, err
	}
	defer func() { _ = view.Release() }()
	r.Vectors, r.Composites, r.Dimension = view.Count(vector.Memories), view.Count(vector.Assemblies), view.Dim()
	c := vectorChecker{st: st, ctx: ctx, view: view, r: &r, model: st.Vectors.Model()}
	for m, err := range memories(ctx, st.Engine) {
		if err = c.unread(err); err == nil {
			err = c.one(vector.Memories, m.ID, m.Version, m.Embedding)
		}
		if err != nil {
			return r, err
		}
	}
	for a, err := range assemblies(ctx, st.Engine) {
		if err = c.unread(err); err == nil {
			err = c.one(vector.Assemblies, a.ID, a.Version, a.CompositeEmbedding)
		}
		if err != nil {
			return r, err
		}
	}
	if err := ctx.Err(); err != nil {
		return r, err
	}
	return r, c.ghosts()
}

func memories(ctx context.Context, eng *engine.Engine) iter.Seq2[memstore.Memory, error] {
	return engine.Reading(ctx, eng, func(yield func(memstore.Memory, error) bool) {
		eng.Each(ctx, engine.Filters{},
			yield)
	})
}

func assemblies(ctx context.Context, eng *engine.Engine) iter.Seq2[assembly.Assembly, error] {
	return engine.Reading(ctx, eng, func(yield func(assembly.Assembly, error) bool) {
		for id, err := range eng.IDs(ctx, eng.Kinds().Assemblies, engine.Filters{}) {
			var a assembly.Assembly
			if err == nil {
				var v engine.Version
				if v, err = eng.Load(ctx, eng.Kinds().Assemblies, id); err == nil {
					a, err = eng.DecodeAssembly(id, v)
				}
			}
			if errors.Is(err, errs.ErrNotFound) {
				continue // gone since
			}
			if !yield(a, err) || ctx.Err() != nil {
				return
			}
		}
	})
}

type vectorChecker struct {
	st        *store.Store
	ctx       context.Context
	view      *vector.View
	r         *VectorReport
	model     index.Model
	row, want []byte
	rows      [2]int64
}

// unread handles err, the error of reading a document, or nil. If the check must end because of err, unread returns
// err. Otherwise it adds err to the report and returns nil.
func (c *vectorChecker) unread(err error) error {
	if err == nil || c.ctx.Err() != nil || errors.Is(err, errs.ErrClosed) {
		return err
	}
	c.r.Unread = listID(c.r.Unread, err.Error())
	return nil
}

func vectorName(kind vector.Kind, id string) string {
	if kind == vector.Assemblies {
		return "assemblies/" + id
	}
	return id
}

func (c *vectorChecker) one(kind vector.Kind, id string, version uint64, embedding []float32) error {
	if id == "" {
		return nil // it could not be read
	}
	embedding, err := c.st.Vectors.EmbeddingNow(c.ctx, &c.model, c.st.Engine.Kinds().All[kind], id, version, embedding)
	if err != nil {
		return err
	}
	r, name := c.r, vectorName(kind, id)
	row, _, has, err := c.view.Row(c.row[:0], kind, id)
	if c.row = row; err != nil {
		return err
	}
	if has {
		c.rows[kind]++
	}
	switch n := len(embedding); {
	case n == 0 && !has:
	case n == 0:
		r.Ghosts = listID(r.Ghosts, name)
		r.counts[2]++
	case n != r.Dimension && !has:
		r.Misfits = listID(r.Misfits, name)
	case !has:
		r.Missing = listID(r.Missing, name)
		r.counts[0]++
	default:
		if c.want = c.view.Metric().Row(c.want[:0], embedding); !bytes.Equal(c.want, row) {
			r.Stale = listID(r.Stale, name)
			r.counts[1]++
		}
	}
	return nil
}

// ghosts adds to the report the vectors of documents that do not exist. A document that has expired and is not deleted
// yet counts as existing.
func (c *vectorChecker) ghosts() error {
	for i, k := range []*engine.Kind{c.st.Engine.Kinds().Memories, c.st.Engine.Kinds().Assemblies} {
		kind := vector.Kind(i)
		if c.rows[kind] >= c.view.Count(kind) {
			continue
		}
		err := c.view.Walk(kind, func(id string) error {
			_, err := c.st.Engine.Find(c.ctx, k, id, false)
			if errors.Is(err, errs.ErrNotFound) {
				c.r.Ghosts = listID(c.r.Ghosts, vectorName(kind, id))
				c.r.counts[2]++
				return nil
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
