package embedding

import (
	"context"
	"errors"
	"slices"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/template"
	"github.com/varve-db/varve/internal/view/vectors"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/vector"
	"github.com/varve-db/varve/wal"
)

// embedded maps texts to their vectors. It is kept as long as the operation may need these vectors again.
type embedded map[string][]float32

// Commit requests the vectors that the memories of operations lack, and then commits the operations. If a vector is not
// available, Commit queues the memory for embedding in the background.
func (em *Embedding) Commit(ctx context.Context, ops []commit.Op, seen commit.Reads, listed wal.LSN,
	known embedded) error {
	if model := em.vectors.Model(); model.Since != 0 {
		for i := range ops {
			if err := em.commits.RefreshVector(ctx, &ops[i], &model); err != nil {
				return err
			}
		}
	}
	if em.config.Call == nil {
		return em.commits.Commit(ctx, ops, seen, listed)
	}
	got, waiting, err := em.embedAll(ctx, ops, known)
	if err != nil {
		return err
	}
	err = em.commits.Commit(ctx, ops, seen, listed)
	if errors.Is(err, vector.ErrDimension) && len(got) > 0 && em.unsuited(ctx, got, err) {
		for _, m := range got {
			commit.SetEmbedding(m, nil)
		}
		waiting = append(waiting, got...)
		err = em.commits.Commit(ctx, ops, seen, listed)
	}
	if err != nil {
		return err
	}
	for _, m := range waiting {
		em.EmbedLater(m.ID)
	}
	for i := range ops {
		if o := &ops[i]; o.NeedsEmbedding && len(o.Memory.Embedding) == 0 {
			em.EmbedLater(o.Memory.ID)
		}
	}
	return nil
}

// embedAll requests the vectors of the memories in ops, in batches, and sets them in the memories. got has the memories
// that got a vector. waiting has the memories that have no vector because the embedder failed. After a failure embedAll
// does not call the embedder again, so a put waits at most once for a service that is down.
func (em *Embedding) embedAll(ctx context.Context, ops []commit.Op,
	known embedded) (got, waiting []*memstore.Memory, err error) {
	var want []*memstore.Memory
	of := map[*memstore.Memory]*commit.Op{}
	seen, session := false, false
	for i := range ops {
		if ops[i].Memory == nil {
			continue
		}
		if !seen {
			if err := em.engine.CatchUp(ctx); err != nil {
				return nil, nil, err
			}
			seen = true
		}
		ok, err := em.wantsEmbedding(ctx, &ops[i])
		if err != nil {
			return nil, nil, err
		}
		if ok {
			want = append(want, ops[i].Memory)
			of[ops[i].Memory] = &ops[i]
			session = session || ops[i].Memory.Session() != ""
		}
	}
	if len(want) == 0 {
		return nil, nil, nil
	}
	if known == nil {
		known = embedded{}
	}
	by := em.now(session)
	says, err := em.texts(ctx, by.template, want, ops)
	if err != nil {
		return nil, nil, err
	}
	var texts []string
	asked := map[string]bool{}
	for _, m := range want {
		text := says[m]
		if _, ok := known[text]; !ok && !asked[text] {
			asked[text] = true
			texts = append(texts, text)
		}
	}
	for batch := range slices.Chunk(texts, em.config.Batch) {
		list, err := em.embed(ctx, batch, by, forWrite)
		if cerr := ctx.Err(); cerr != nil {
			return nil, nil, cerr
		}
		if err != nil {
			break
		}
		for i, text := range batch {
			known[text] = list[i]
		}
	}
	for _, m := range want {
		v := known[says[m]] // nil if the embedder failed: an old vector would belong to another text
		commit.SetEmbedding(m, v)
		if v == nil {
			waiting = append(waiting, m)
		} else {
			of[m].EmbeddedHere, of[m].EmbeddedBy = true, by.name
			got = append(got, m)
		}
	}
	return got, waiting, nil
}

// wantsEmbedding reports whether the embedder must be asked for the vector of a memory. This is so if the memory has no
// embedding; if its content is new but its embedding is still the one with which it was read; or if the text to embed
// (template.Own) has changed and the embedding is that of the version being replaced. A memory that is put again with
// an unchanged text keeps the stored embedding. The stored version may change before the commit, but the vector belongs
// to the memory's text in any case.
func (em *Embedding) wantsEmbedding(ctx context.Context, o *commit.Op) (bool, error) {
	m := o.Memory
	if !vectors.Embeddable(m.Content) || o.Derived {
		return false, nil
	}
	none := len(m.Embedding) == 0
	if !none && m.Reworded() && m.KeepsEmbedding() {
		return true, nil // whatever is stored by now, the embedding is not of this content
	}
	if o.ID == "" {
		return none, nil
	}
	v, err := em.engine.Load(ctx, em.engine.Kinds().Memories, o.ID)
	if err != nil {
		if cerr := ctx.Err(); cerr != nil {
			return false, cerr
		}
		return none && (!errors.Is(err, errs.ErrNotFound) || o.Conds.Holds(o.ID, 0, v.Line.UpdatedAt) == nil), nil
	}
	if v.Expired(em.engine.Env().Clock()) {
		return none, nil
	}
	if o.Conds.Holds(o.ID, v.LSN, v.Line.UpdatedAt) != nil {
		return false, nil // the commit will return the error
	}
	old, err := em.engine.Decode(o.ID, v)
	if err != nil {
		return none, nil
	}
	model := em.vectors.Model()
	by := template.Of(model.Name) // vectors without a named model were made without a template
	switch {
	case none && !m.Decoded() && by.Own(&old) == by.Own(m) && len(old.Embedding) > 0:
		m.Embedding = old.Embedding
		return false, nil
	case none:
		return true, nil
	}
	return by.Own(&old) != by.Own(m) && slices.Equal(old.Embedding, m.Embedding), nil
}

// Write does the same as commit.Write, and also requests the embeddings that are missing. It is for operations that
// need not be prepared again if the commit is repeated.
func (em *Embedding) Write(ctx context.Context, ops []commit.Op, seen commit.Reads, listed wal.LSN) error {
	return em.Commit(ctx, ops, seen, listed, nil)
}

// Transact runs f, requests the vectors that the memories of its operations lack, and commits the operations. If f runs
// again and writes the same texts, Transact does not request their vectors again.
func (em *Embedding) Transact(ctx context.Context, session *string, f func(tx *commit.Tx) error) error {
	known := embedded{}
	write := func(ctx context.Context, ops []commit.Op, seen commit.Reads, listed wal.LSN) error {
		return em.Commit(ctx, ops, seen, listed, known)
	}
	return em.commits.Transact(ctx, session, write, f)
}
