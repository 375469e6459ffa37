package embedding

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/template"
	"github.com/varve-db/varve/internal/view/vectors"
	"github.com/varve-db/varve/memstore"
)

// DefaultEmbedBatch is how many texts an embedder gets at once, and DefaultEmbedTimeout how long a
// write or a query waits for it.
const (
	DefaultEmbedBatch   = 64
	DefaultEmbedTimeout = 30 * time.Second
)

// Embedding is what a store knows of its embedder, and of what waits for it.
type Embedding struct {
	engine   *engine.Engine
	vectors  *vectors.Vectors
	commits  *commit.Committer
	config   Config
	breaker  Breaker
	precedes Before // what is before a memory in its session; nil: not known

	open  context.Context // ends when the store closes
	Close context.CancelFunc
	kick  chan struct{} // there is something to do, or a reason to try at once

	mu        sync.Mutex
	Dimension int // of the first vectors that came; 0: none so far
	err       error
	up        bool            // it was down and works; nobody was told yet
	queue     []string        // ids of memories without a vector, the next first
	queued    map[string]bool // the same
	Scan      bool            // the index may have more of them, behind after
	After     string
	unseen    int64 // about how many those are
	Again     bool  // one that may lie before after had no place in the queue
	held      bool  // this process computes the vectors of another model
}

// Config says which embedder a store has.
type Config struct {
	Call  func(ctx context.Context, texts []string) ([][]float32, error) // nil: there is no embedder
	Batch int                                                            // of texts that it gets at once
	Model string                                                         // of its vectors
	// a vector of another dimension is cut or padded
	Fit     bool
	Timeout time.Duration // of a call that a write or a query waits for
	Service string        // "": its failures are not shared with other processes of the user
}

// New returns what a store knows of its embedder. before finds what precedes a memory in its session.
func New(eng *engine.Engine, vs *vectors.Vectors, cm *commit.Committer, before Before, c Config) *Embedding {
	e := &Embedding{engine: eng, vectors: vs, commits: cm, precedes: before, config: c}
	host, service := eng.Env(), c.Service
	e.breaker.Clock = host.Clock
	if service != "" && host.StateDir != "" && !places.Within(host.StateDir, host.Dir) {
		e.breaker.Kept = &Kept{FS: host.System.FS, Dir: host.StateDir, Name: service, Random: host.Random}
	}
	e.open, e.Close = context.WithCancel(context.Background())
	e.kick, e.queued = make(chan struct{}, 1), map[string]bool{}
	return e
}

// Breaker returns the breaker of calls to the embedder.
func (e *Embedding) Breaker() *Breaker { return &e.breaker }

// Model returns the name of what this process asks for embeddings, "" if it has no embedder.
func (e *Embedding) Model() string {
	if e.config.Call == nil {
		return ""
	}
	return e.config.Model
}

// Tune returns the configuration. Tests change it while nothing uses the embedder.
func (e *Embedding) Tune() *Config { return &e.config }

var errEmbedClosing = errors.New("the store is closing")

// embed asks the embedder for the vectors of texts, outside of all locks. An
// error of ctx is ctx's; every other one means that there are no vectors now.
//
// Where by is nil they are for a model whose turn has not come, or nothing is stored; otherwise the
// store's vectors have to be of the embedder's model, made by the same template, and of its dimension.
func (em *Embedding) embed(ctx context.Context, texts []string, by *maker, wait waiter) ([][]float32, error) {
	var list [][]float32
	var err error
	if model := em.vectors.Model(); by != nil {
		err = em.Suits(&model)
	}
	if err == nil {
		list, err = em.ask(ctx, slices.Clone(texts), wait)
	}
	if cerr := ctx.Err(); cerr != nil {
		return nil, cerr
	}
	if err == nil {
		err = em.checkVectors(ctx, list, len(texts), by == nil)
	}
	if err == nil && by != nil {
		err = em.nameModel(ctx, by)
	}
	for i := range list {
		list[i] = slices.Clone(list[i]) // an embedder may use its memory again
	}
	em.mu.Lock()
	again := err == nil && (em.err != nil || em.up)
	em.up = em.up && err != nil
	em.err = err
	if err == nil && em.Dimension == 0 {
		em.Dimension = len(list[0])
	}
	em.mu.Unlock()
	switch {
	case err != nil:
		em.engine.Env().Logger.Warn("embedding failed", "texts", len(texts), "err", err)
		em.engine.Env().Event(env.Event{Kind: env.EventEmbedFailed, Count: len(texts), Err: err})
		return nil, err
	case again:
		em.engine.Env().Event(env.Event{Kind: env.EventEmbedWorks})
		em.kickEmbedding()
	}
	return list, nil
}

// laterLimit is the limit of a call for which no write and no query waits.
const laterLimit = 10 * time.Minute

// ask asks the embedder, if the breaker lets it pass.
func (em *Embedding) ask(ctx context.Context, texts []string, by waiter) ([][]float32, error) {
	limit := em.config.Timeout
	c, err := em.breaker.enter(by, limit)
	if err != nil {
		return nil, err
	}
	if by != forWrite && !c.probe {
		limit = max(limit, laterLimit)
	}
	list, err := em.callEmbedder(ctx, texts, limit)
	down := err
	if err != nil && answered(err) {
		down = nil
	}
	switch em.breaker.leave(c, down, ctx.Err() != nil || errors.Is(err, errEmbedClosing)) {
	case wentDown:
		em.engine.Env().Logger.Warn("the embedder is down", "err", err)
		em.engine.Env().Event(env.Event{Kind: env.EventEmbedDown, Count: breakerFailures, Took: breakerFirst, Err: err})
	case cameUp:
		em.mu.Lock()
		em.up = true
		em.mu.Unlock()
	}
	return list, err
}

// Query asks for the vectors of texts to search by, each in the template of queries. Nothing is stored.
func (em *Embedding) Query(ctx context.Context, texts []string) ([][]float32, error) {
	if em.config.Call == nil {
		return nil, errNone
	}
	said := template.Queries(em.engine.Settings().Now().VectorSettings().QueryTemplate, texts)
	list, err := em.ask(ctx, said, forWrite)
	if cerr := ctx.Err(); cerr != nil {
		return nil, cerr
	}
	if err == nil && len(list) != len(texts) {
		err = fmt.Errorf("the embedder returned %d vectors for %d texts", len(list), len(texts))
	}
	em.mu.Lock()
	up := em.up && err == nil
	em.up = em.up && !up
	if up {
		em.err = nil // the wait of the background ends
	}
	em.mu.Unlock()
	switch {
	case up:
		em.engine.Env().Event(env.Event{Kind: env.EventEmbedWorks})
		em.kickEmbedding()
	case err != nil:
		return nil, err
	}
	for i := range list {
		list[i] = slices.Clone(list[i])
	}
	return list, nil
}

// callEmbedder gives the embedder up, whatever it does, when ctx ends, after a limit, or when the
// store closes. A panic of it is an error like any other: it is foreign code, and
// the memory is to be stored all the same.
func (em *Embedding) callEmbedder(ctx context.Context, texts []string,
	limit time.Duration) (list [][]float32, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	call := func() (list [][]float32, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("the embedder panicked: %v", p)
			}
		}()
		return em.config.Call(ctx, texts)
	}
	if em.engine.Env().System.Inline {
		return call()
	}
	defer context.AfterFunc(em.open, func() { cancel(errEmbedClosing) })()
	late := fmt.Errorf("the embedder did not answer within %s", limit)
	ctx, stop := context.WithTimeoutCause(ctx, limit, late)
	defer stop()
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
		if r.err != nil && context.Cause(ctx) == late {
			return nil, late // what the embedder says then is that its ctx has ended
		}
		return r.list, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// checkVectors refuses what is not one vector for each text, all of one
// dimension, the same as before, of numbers.
func (em *Embedding) checkVectors(ctx context.Context, list [][]float32, texts int, next bool) error {
	if len(list) != texts {
		return fmt.Errorf("the embedder returned %d vectors for %d texts", len(list), texts)
	}
	want := em.embeddingDimension()
	stored := 0
	if !em.config.Fit && !next {
		if dim, _, err := em.vectors.Dimension(ctx); err == nil {
			stored = dim
		}
	}
	for i, v := range list {
		if want == 0 {
			want = len(v)
		}
		switch most := em.engine.Settings().Now().MemoryLimits().Resolved().EmbeddingDim; {
		case len(v) == 0:
			return fmt.Errorf("the embedder returned an empty vector for text %d of %d", i+1, texts)
		case stored != 0 && len(v) != stored:
			return em.vectors.OtherDimension("a vector of the embedder", len(v), stored)
		case len(v) != want:
			return fmt.Errorf("the embedder returned a vector of %d dimensions, others have %d", len(v), want)
		case len(v) > most:
			return fmt.Errorf("the embedder returned a vector of %d dimensions, the limit is %d (max_embedding_dims)", len(v),
				most)
		}
		for j, x := range v {
			if x != x || math.IsInf(float64(x), 0) {
				return fmt.Errorf("the embedder returned %v in place %d of the vector for text %d of %d", x, j, i+1, texts)
			}
		}
		if !em.vectors.Meaningful(v) {
			return fmt.Errorf("the embedder returned a vector of zeros for text %d of %d, which is similar to nothing", i+1,
				texts)
		}
	}
	return nil
}

// unsuited reports whether a commit was refused for the vectors that the embedder
// gave: somebody decided another dimension while it was asked.
func (em *Embedding) unsuited(ctx context.Context, got []*memstore.Memory, err error) bool {
	if dim, _, derr := em.vectors.Dimension(ctx); derr != nil || dim == len(got[0].Embedding) {
		return false // the caller's own vector
	}
	e := em
	e.mu.Lock()
	e.err, e.Dimension = err, 0
	e.mu.Unlock()
	em.engine.Env().Logger.Warn("embedding failed", "texts", len(got), "err", err)
	em.engine.Env().Event(env.Event{Kind: env.EventEmbedFailed, Count: len(got), Err: err})
	return true
}

// embeddingDimension is what vectors have here; 0 while it is unknown.
func (em *Embedding) embeddingDimension() int {
	em.mu.Lock()
	defer em.mu.Unlock()
	return em.Dimension
}
