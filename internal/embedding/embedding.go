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

// DefaultEmbedBatch is the maximum number of texts in one call of the embedder, and DefaultEmbedTimeout is the maximum
// time that a write or a query waits for one call.
const (
	DefaultEmbedBatch   = 64
	DefaultEmbedTimeout = 30 * time.Second
)

// Embedding is the embedder of a store, and the queue of memories that are to be embedded.
type Embedding struct {
	engine   *engine.Engine
	vectors  *vectors.Vectors
	commits  *commit.Committer
	config   Config
	breaker  Breaker
	precedes Before // finds the preceding memory in a session; nil: unavailable
	sections Sections

	open  context.Context // ends when the store closes
	Close context.CancelFunc
	kick  chan struct{} // wakes the background goroutine, because there is work or a reason to try again at once

	mu        sync.Mutex
	Dimension int // dimension of the first vectors that the embedder returned; 0: it has returned none yet
	err       error
	up        bool            // the embedder works again after it was down, and this is not reported yet
	queue     []string        // ids of memories without a vector, in the order of processing
	queued    map[string]bool // ids that are in queue
	Scan      bool            // the index may have more memories without a vector; their ids are after After
	After     string
	unseen    int64 // approximate number of memories without a vector that are not in queue
	Again     bool  // the queue was full when a memory was added, whose id may be before After
	held      bool  // this process computes the vectors of another model, and requests none for memories that are put
}

// Config has the options of New. Tests may change them later.
type Config struct {
	Call  func(ctx context.Context, texts []string) ([][]float32, error) // the embedder; nil: the store has no embedder
	Batch int                                                            // maximum number of texts in one call
	Model string                                                         // name of the embedder's model
	// Fit means that the embedder's vectors are cut or padded if their dimension is not the store's.
	Fit     bool
	Timeout time.Duration // maximum duration of a call that a write or a query waits for
	Service string        // name of the service; "": failures are not shared with other processes of the user
}

// New returns the embedder of a store. previous finds, for a memory, the previous memory in the same session.
// sections gives access to the texts of notes; it is nil if the texts of notes are not embedded.
func New(eng *engine.Engine, vs *vectors.Vectors, cm *commit.Committer, previous Before, sections Sections,
	c Config) *Embedding {
	e := &Embedding{engine: eng, vectors: vs, commits: cm, precedes: previous, sections: sections, config: c}
	host, service := eng.Env(), c.Service
	e.breaker.Clock = host.Clock
	if service != "" && host.StateDir != "" && !places.Within(host.StateDir, host.Dir) {
		e.breaker.Kept = &Kept{FS: host.System.FS, Dir: host.StateDir, Name: service, Random: host.Random}
	}
	e.open, e.Close = context.WithCancel(context.Background())
	e.kick, e.queued = make(chan struct{}, 1), map[string]bool{}
	return e
}

// Breaker returns the Breaker that decides whether the embedder may be called.
func (e *Embedding) Breaker() *Breaker { return &e.breaker }

// Model returns the name of the model of this process's embedder, "" if it has no embedder.
func (e *Embedding) Model() string {
	if e.config.Call == nil {
		return ""
	}
	return e.config.Model
}

// Tune returns the configuration. Tests change it while nothing uses the embedder.
func (e *Embedding) Tune() *Config { return &e.config }

var errEmbedClosing = errors.New("the store is closing")

// embed requests the vectors of texts from the embedder. The caller holds no lock. wait is the kind of caller. If
// ctx ends, embed returns the error of ctx. Any other error means that the embedder returned no usable vectors.
//
// mk is the maker of the vectors. If mk is nil, the vectors are for a future model, or the caller does not store
// them. If mk is not nil, the store's vectors must be of the embedder's model and made with the same template,
// and, unless Config.Fit is set, the new vectors must have the dimension of the store's vectors.
func (em *Embedding) embed(ctx context.Context, texts []string, mk *maker, wait waiter) ([][]float32, error) {
	var list [][]float32
	var err error
	if model := em.vectors.Model(); mk != nil {
		err = em.Suits(&model)
	}
	if err == nil {
		list, err = em.ask(ctx, slices.Clone(texts), wait)
	}
	if cerr := ctx.Err(); cerr != nil {
		return nil, cerr
	}
	if err == nil {
		err = em.checkVectors(ctx, list, len(texts), mk == nil)
	}
	if err == nil && mk != nil {
		err = em.nameModel(ctx, mk)
	}
	for i := range list {
		list[i] = slices.Clone(list[i]) // the embedder may reuse its memory
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

// laterLimit is the timeout of a call that no write and no query waits for.
const laterLimit = 10 * time.Minute

// ask calls the embedder to get the vectors of texts, if the breaker allows the call. caller is the kind of
// caller: if no write and no query waits for the call, the call may take longer than Config.Timeout.
func (em *Embedding) ask(ctx context.Context, texts []string, caller waiter) ([][]float32, error) {
	limit := em.config.Timeout
	c, err := em.breaker.enter(caller, limit)
	if err != nil {
		return nil, err
	}
	if caller != forWrite && !c.probe {
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

// Query returns the vectors of query texts. It first inserts each text into the template for queries. It stores
// nothing.
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
		em.err = nil // ends the wait of the background
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
	return list, em.fit(ctx, list)
}

// fit cuts or pads vectors of the embedder to the dimension of the store's vectors, if Config.Fit is set.
func (em *Embedding) fit(ctx context.Context, vecs [][]float32) error {
	if !em.config.Fit {
		return nil
	}
	dim, _, err := em.vectors.Dimension(ctx)
	if err != nil || dim == 0 {
		return err
	}
	for i, v := range vecs {
		vecs[i] = commit.Fit(v, dim)
	}
	return nil
}

// callEmbedder calls the embedder. It returns when the embedder answers, ctx ends, limit passes, or the store closes,
// even if the embedder ignores its ctx. If the embedder panics, callEmbedder returns an error, because the embedder is
// foreign code and the memory must be stored nevertheless.
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
			return nil, late // the embedder's own error only says that its ctx ended
		}
		return r.list, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// checkVectors returns an error unless the embedder has returned one vector for each text, and all have the
// expected dimension and finite numbers.
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
			return fmt.Errorf("the embedder returned a vector of %d dimensions, but other vectors have %d", len(v),
				want)
		case len(v) > most:
			return fmt.Errorf("the embedder returned a vector of %d dimensions, the limit is %d (max_embedding_dims)", len(v),
				most)
		}
		for j, x := range v {
			if x != x || math.IsInf(float64(x), 0) {
				return fmt.Errorf("the embedder returned %v at index %d of the vector for text %d of %d", x, j, i+1,
					texts)
			}
		}
		if !em.vectors.Meaningful(v) {
			return fmt.Errorf("the embedder returned a vector of zeros for text %d of %d; such a vector cannot be "+
				"compared", i+1, texts)
		}
	}
	return nil
}

// unsuited reports whether a commit was refused with err because another process has chosen a dimension for the store's
// vectors that the vectors in got do not have. If so, unsuited records and reports the failure, and forgets the
// embedder's dimension.
func (em *Embedding) unsuited(ctx context.Context, got []*memstore.Memory, err error) bool {
	if dim, _, derr := em.vectors.Dimension(ctx); derr != nil || dim == len(got[0].Embedding) {
		return false // the vector came from the caller
	}
	e := em
	e.mu.Lock()
	e.err, e.Dimension = err, 0
	e.mu.Unlock()
	em.engine.Env().Logger.Warn("embedding failed", "texts", len(got), "err", err)
	em.engine.Env().Event(env.Event{Kind: env.EventEmbedFailed, Count: len(got), Err: err})
	return true
}

// embeddingDimension returns the dimension of the embedder's vectors, or 0 while the dimension is unknown.
func (em *Embedding) embeddingDimension() int {
	em.mu.Lock()
	defer em.mu.Unlock()
	return em.Dimension
}
