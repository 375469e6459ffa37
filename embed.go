package varve

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/varve-db/varve/internal/env"
)

// defaultEmbedBatch is how many texts an embedder gets at once.
const defaultEmbedBatch = 64

// embedding is what a store knows of its embedder, and of what waits for it.
type embedding struct {
	open  context.Context // ends when the store closes
	close context.CancelFunc
	kick  chan struct{} // there is something to do, or a reason to try at once

	mu        sync.Mutex
	dimension int // of the first vectors that came; 0: none so far
	err       error
	queue     []string        // ids of memories without a vector, the next first
	queued    map[string]bool // the same
	scan      bool            // the index may have more of them, behind after
	after     string
	unseen    int64 // about how many those are
	again     bool  // one that may lie before after had no place in the queue
	held      bool  // this process computes the vectors of another model
}

func (e *embedding) init() {
	e.open, e.close = context.WithCancel(context.Background())
	e.kick, e.queued = make(chan struct{}, 1), map[string]bool{}
}

var errEmbedClosing = errors.New("the store is closing")

// embed asks the embedder for the vectors of texts, outside of all locks. An
// error of ctx is ctx's; every other one means that there are no vectors now.
//
// next says that they are for a model whose turn has not come; otherwise the
// store's vectors have to be of the embedder's model, and of its dimension.
func (st *Store) embed(ctx context.Context, texts []string, next bool) ([][]float32, error) {
	var list [][]float32
	var err error
	if model := st.vectors.Model(); !next {
		err = st.suits(&model)
	}
	if err == nil {
		list, err = st.callEmbedder(ctx, slices.Clone(texts))
	}
	if cerr := ctx.Err(); cerr != nil {
		return nil, cerr
	}
	if err == nil {
		err = st.checkVectors(ctx, list, len(texts), next)
	}
	if err == nil && !next {
		err = st.nameModel(ctx)
	}
	for i := range list {
		list[i] = slices.Clone(list[i]) // an embedder may use its memory again
	}
	st.embedding.mu.Lock()
	again := st.embedding.err != nil && err == nil
	st.embedding.err = err
	if err == nil && st.embedding.dimension == 0 {
		st.embedding.dimension = len(list[0])
	}
	st.embedding.mu.Unlock()
	switch {
	case err != nil:
		st.engine.Env.Logger.Warn("embedding failed", "texts", len(texts), "err", err)
		st.engine.Env.Event(env.Event{Kind: env.EventEmbedFailed, Count: len(texts), Err: err})
		return nil, err
	case again:
		st.engine.Env.Event(env.Event{Kind: env.EventEmbedWorks})
		st.kickEmbedding()
	}
	return list, nil
}

// callEmbedder gives the embedder up, whatever it does, when ctx ends or the
// store closes. A panic of it is an error like any other: it is foreign code, and
// the memory is to be stored all the same.
func (st *Store) callEmbedder(ctx context.Context, texts []string) (list [][]float32, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	call := func() (list [][]float32, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("the embedder panicked: %v", p)
			}
		}()
		return st.o.Embed(ctx, texts)
	}
	if st.engine.Env.System.Inline {
		return call()
	}
	defer context.AfterFunc(st.embedding.open, func() { cancel(errEmbedClosing) })()
	type result struct {
		list [][]float32
		err  error
	}
	done := make(chan result, 1)
	go func() {
		list, err := call()
		done <- result{list, err}
	}()
	select {
	case r := <-done:
		return r.list, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// checkVectors refuses what is not one vector for each text, all of one
// dimension, the same as before, of numbers.
func (st *Store) checkVectors(ctx context.Context, list [][]float32, texts int, next bool) error {
	if len(list) != texts {
		return fmt.Errorf("the embedder gave %d vectors for %d texts", len(list), texts)
	}
	want := st.embeddingDimension()
	stored := 0
	if !st.o.VectorFit && !next {
		if dim, _, err := st.vectors.Dimension(ctx); err == nil {
			stored = dim
		}
	}
	for i, v := range list {
		if want == 0 {
			want = len(v)
		}
		switch most := st.engine.Settings.Now().MemoryLimits().Resolved().EmbeddingDim; {
		case len(v) == 0:
			return fmt.Errorf("the embedder gave an empty vector for text %d of %d", i+1, texts)
		case stored != 0 && len(v) != stored:
			return st.vectors.OtherDimension("a vector of the embedder", len(v), stored)
		case len(v) != want:
			return fmt.Errorf("the embedder gave a vector of %d dimensions, others have %d", len(v), want)
		case len(v) > most:
			return fmt.Errorf("the embedder gave a vector of %d dimensions, the limit is %d (max_embedding_dims)", len(v), most)
		}
		for j, x := range v {
			if x != x || math.IsInf(float64(x), 0) {
				return fmt.Errorf("the embedder gave %v in place %d of the vector for text %d of %d", x, j, i+1, texts)
			}
		}
	}
	return nil
}

// unsuited says whether a commit was refused for the vectors that the embedder
// gave: somebody decided another dimension while it was asked.
func (st *Store) unsuited(ctx context.Context, got []*Memory, err error) bool {
	if dim, _, derr := st.vectors.Dimension(ctx); derr != nil || dim == len(got[0].Embedding) {
		return false // the caller's own vector
	}
	e := &st.embedding
	e.mu.Lock()
	e.err, e.dimension = err, 0
	e.mu.Unlock()
	st.engine.Env.Logger.Warn("embedding failed", "texts", len(got), "err", err)
	st.engine.Env.Event(env.Event{Kind: env.EventEmbedFailed, Count: len(got), Err: err})
	return true
}

// embeddingDimension is what vectors have here; 0 while nobody knows.
func (st *Store) embeddingDimension() int {
	st.embedding.mu.Lock()
	defer st.embedding.mu.Unlock()
	return st.embedding.dimension
}
