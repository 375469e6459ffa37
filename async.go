package varve

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/varve-db/varve/errs"
)

// Pending is a Put in progress.
type Pending struct {
	memory Memory
	err    error
	done   chan struct{}
}

// Wait returns the result of the Put. If ctx ends first, the outcome is unknown: ErrOutcomeUnknown.
func (p *Pending) Wait(ctx context.Context) (Memory, error) {
	select {
	case <-p.done:
		return p.memory, p.err
	default:
	}
	select {
	case <-p.done:
		return p.memory, p.err
	case <-ctx.Done():
		return Memory{}, fmt.Errorf("%w: %w", errs.ErrOutcomeUnknown, ctx.Err())
	}
}

// asyncBytes is the limit, in bytes, for the memories in progress. PutAsync blocks while its memory would exceed this
// limit.
const asyncBytes = 64 << 20

// async tracks the PutAsync calls in progress.
type async struct {
	bytes *semaphore.Weighted
	mu    sync.Mutex
	last  map[string]chan struct{} // closed when the newest put of the id is done; by id
}

func (a *async) init() {
	a.bytes, a.last = semaphore.NewWeighted(asyncBytes), map[string]chan struct{}{}
}

// follow registers a put of an id, so that puts of one id keep their order. done is a channel that the caller closes
// when its own put is done. follow returns the channel that is closed when the previous put of this id is done, or nil
// if no put of the id is in progress or the id is empty.
func (a *async) follow(id string, done chan struct{}) <-chan struct{} {
	if id == "" {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.last[id]
	a.last[id] = done
	return before
}

func (a *async) leave(id string, done chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last[id] == done {
		delete(a.last, id)
	}
}

// PutAsync starts a Put and returns at once if the memory fits into the 64 MiB allowed for memories in progress;
// otherwise PutAsync waits until the memory fits. Readers do not see the memory until it is durable. Puts of the same
// id keep their order; puts of different ids may become durable in any order. Close waits for all puts in progress.
func (st *Store) PutAsync(m Memory, options ...PutOption) *Pending {
	p := &Pending{done: make(chan struct{})}
	if err := st.inner.Engine.BeginUse(); err != nil {
		p.err = err
		close(p.done)
		return p
	}
	if st.inner.Engine.Env().System.Inline {
		p.memory, p.err = st.put(context.Background(), m, options)
		st.inner.Engine.EndUse()
		close(p.done)
		return p
	}
	m = *m.Clone()
	size := min(sizeGuess(&m), asyncBytes)
	_ = st.async.bytes.Acquire(context.Background(), size) // fails only if the context ends
	before := st.async.follow(m.ID, p.done)
	id := m.ID
	go func() {
		defer st.inner.Engine.EndUse() // Close waits for it
		defer st.async.bytes.Release(size)
		if before != nil {
			<-before
		}
		p.memory, p.err = st.put(st.inner.Engine.Progress().Context, m, options)
		st.inner.Engine.Progress().Ended("PutAsync", p.err)
		close(p.done)
		st.async.leave(id, p.done)
	}()
	return p
}
