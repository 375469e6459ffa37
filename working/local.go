package working

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/varve-db/varve/errs"
)

// sweepEach is the number of expired items that each write removes. It is more than a write can add one at a time,
// so that expired items do not accumulate.
const sweepEach = 4

// Local is the in-process home: its contents end with the process. It is safe for concurrent use.
type Local struct {
	clock Clock
	// number of the newest change in any scope: one counter, so that a scope that is created again never repeats a
	// version
	version atomic.Uint64
	mu      sync.RWMutex
	scopes  map[Scope]*localScope
	closed  bool
}

type localScope struct {
	mu    sync.Mutex
	state *State
	gone  bool // the scope was removed from the map
}

// NewLocal returns an empty home. A nil clock means the system's clock.
func NewLocal(clock Clock) *Local {
	if clock == nil {
		clock = SystemClock()
	}
	return &Local{clock: clock, scopes: map[Scope]*localScope{}}
}

// Name returns "memory".
func (h *Local) Name() string { return "memory" }

// Do carries out one operation.
func (h *Local) Do(ctx context.Context, r *Request) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	for {
		sc, err := h.scope(r.Scope, Writes(r.Op))
		if err != nil {
			return Result{}, err
		}
		if res, ok, err := h.on(sc, r); ok {
			return res, err
		}
	}
}

// scope returns the localScope of s. If the scope does not exist, it is created; without create, an empty one
// is returned that is not kept.
func (h *Local) scope(s Scope, create bool) (*localScope, error) {
	h.mu.RLock()
	sc, closed := h.scopes[s], h.closed
	h.mu.RUnlock()
	switch {
	case closed:
		return nil, errs.ErrClosed
	case sc != nil:
		return sc, nil
	case !create:
		return &localScope{state: NewState()}, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, errs.ErrClosed
	}
	if sc = h.scopes[s]; sc == nil {
		sc = &localScope{state: NewState()}
		h.scopes[s] = sc
	}
	return sc, nil
}

// on performs an operation on a scope. The bool is false if the scope was dropped meanwhile: then the caller must
// look up the scope again.
func (h *Local) on(sc *localScope, r *Request) (Result, bool, error) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if sc.gone {
		return Result{}, false, nil
	}
	at := moment(h.clock)
	d, res, err := sc.state.Judge(at, r)
	if err == nil && !d.Empty() {
		sc.state.Play(at, h.version.Add(1), &d)
		sc.state.Sweep(at.Tick, sweepEach)
	}
	if err == nil {
		sc.state.Complete(r.Op, &res)
	}
	if sc.state.Empty() && Writes(r.Op) {
		h.remove(r.Scope, sc)
	}
	return res, true, err
}

// remove deletes a dropped scope from the map. The caller holds sc.mu: no goroutine waits for sc.mu
// while it holds h.mu.
func (h *Local) remove(s Scope, sc *localScope) {
	sc.gone = true
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.scopes[s] == sc {
		delete(h.scopes, s)
	}
}

// Scopes lists the scopes.
func (h *Local) Scopes(ctx context.Context) iter.Seq2[Scope, error] {
	return func(yield func(Scope, error) bool) {
		h.mu.RLock()
		all := slices.Collect(maps.Keys(h.scopes))
		h.mu.RUnlock()
		for _, s := range all {
			if err := ctx.Err(); err != nil {
				yield(Scope{}, err)
				return
			}
			if !yield(s, nil) {
				return
			}
		}
	}
}

// Release deletes the scope: the process has its only copy.
func (h *Local) Release(_ context.Context, s Scope) error {
	h.mu.RLock()
	sc := h.scopes[s]
	h.mu.RUnlock()
	if sc == nil {
		return nil
	}
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if !sc.gone {
		h.remove(s, sc)
	}
	return nil
}

// Check returns nil until the home is closed.
func (h *Local) Check(context.Context) error {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.closed {
		return errs.ErrClosed
	}
	return nil
}

// Close deletes everything.
func (h *Local) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed, h.scopes = true, nil
	return nil
}
