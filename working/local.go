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

// sweepEach is the maximum number of expired items that a write removes. It is higher than the number of items that a
// typical write adds, so expired items do not accumulate.
const sweepEach = 4

// Local is the in-process home. Its data is lost when the process ends. It is safe for concurrent use.
type Local struct {
	clock Clock
	// version of the newest change in any scope; all scopes share one counter, so that a scope that is dropped and
	// created again does not use a version twice
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

// NewLocal returns a Local without scopes. If clock is nil, the Local uses SystemClock.
func NewLocal(clock Clock) *Local {
	if clock == nil {
		clock = SystemClock()
	}
	return &Local{clock: clock, scopes: map[Scope]*localScope{}}
}

// Name returns "memory".
func (h *Local) Name() string { return "memory" }

// Do performs one operation.
func (h *Local) Do(ctx context.Context, r *Request) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	for {
		sc, err := h.scope(r.Scope, Writes(r.Op))
		if err != nil {
			return Result{}, err
		}
		if res, ok, err := h.doOnScope(sc, r); ok {
			return res, err
		}
	}
}

// scope returns the localScope of s. If the scope does not exist, it creates the scope if create is true; otherwise it
// returns an empty localScope that is not part of the home.
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

// doOnScope performs an operation on a scope. It returns false if the scope was removed from the map in the
// meantime; the caller must then look up the scope again.
func (h *Local) doOnScope(sc *localScope, r *Request) (Result, bool, error) {
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

// remove deletes a scope from the map. The caller holds sc.mu. Locking h.mu here cannot cause a deadlock, because no
// goroutine waits for sc.mu while it holds h.mu.
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

// Release deletes the scope, because only this process has its data.
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

// Check returns ErrClosed if the home was closed, and otherwise nil.
func (h *Local) Check(context.Context) error {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.closed {
		return errs.ErrClosed
	}
	return nil
}

// Close deletes all data. Later operations return ErrClosed.
func (h *Local) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed, h.scopes = true, nil
	return nil
}
