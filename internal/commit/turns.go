package commit

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/varve-db/varve/internal/engine"
)

// turns orders, for each document, the writers in this process that have met a conflict: these writers then try one at
// a time, and an unconditional put of the document waits for them. A turn is only an optimization: no write depends on
// it for correctness. A writer waits for a turn for at most mostTurn. So a transaction whose function waits for
// another write of the same document does not wait for itself.
type turns struct {
	mu   sync.Mutex
	of   map[string]*waiters
	some atomic.Int64 // number of documents that have turns
}

type waiters struct {
	engine.CtxMutex
	n int // number of writers that have the turn or wait for it
}

const mostTurn = 100 * time.Millisecond

// turn is the position of one commit or transaction in the queue of turns.
type turn struct {
	all *turns
	key string
	in  *waiters // queue of writers that t is in: the writers of one document; nil: none
	has bool

	alone bool // the store has no background goroutines: no turn is ever taken
}

func (cm *Committer) turn() turn {
	return turn{all: &cm.turns, alone: cm.engine.Env().System.Inline}
}

// take leaves the current turn, and waits for the turn of the document with this key, for at most mostTurn.
func (t *turn) take(ctx context.Context, key string) error {
	if key == "" || t.in != nil && t.key == key || t.alone {
		return nil
	}
	t.leave()
	t.all.mu.Lock()
	if t.all.of == nil {
		t.all.of = map[string]*waiters{}
	}
	if t.in = t.all.of[key]; t.in == nil {
		t.in = &waiters{CtxMutex: engine.NewMutex()}
		t.all.of[key] = t.in
		t.all.some.Add(1)
	}
	t.key = key
	t.in.n++
	t.all.mu.Unlock()
	return t.wait(ctx)
}

func (t *turn) wait(ctx context.Context) error {
	some, cancel := context.WithTimeout(ctx, mostTurn)
	defer cancel()
	if err := t.in.Lock(some); err == nil {
		t.has = true
	} else if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		t.leave()
		return ctx.Err()
	}
	return nil
}

// join waits for the turn of a document if other writers have the turn or wait for it. It does nothing if t already has
// a turn or waits for one.
func (t *turn) join(ctx context.Context, key string) error {
	if t.in != nil || !t.all.busy(key) {
		return nil
	}
	return t.take(ctx, key)
}

// busy reports whether a writer has the turn of a document, or waits for it.
func (ts *turns) busy(key string) bool {
	if ts.some.Load() == 0 {
		return false
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.of[key] != nil
}

// pass waits while other writers have the turn of a document, or wait for it. It then gives its own turn up at once.
func (t *turn) pass(ctx context.Context, key string) error {
	if !t.all.busy(key) {
		return nil
	}
	err := t.take(ctx, key)
	t.leave()
	return err
}

// leave ends the turn, or the wait for it: the next writer of the document gets the turn.
func (t *turn) leave() {
	if t.in == nil {
		return
	}
	if t.has {
		t.in.Unlock()
	}
	t.all.mu.Lock()
	if t.in.n--; t.in.n == 0 {
		delete(t.all.of, t.key)
		t.all.some.Add(-1)
	}
	t.all.mu.Unlock()
	t.in, t.has = nil, false
}
