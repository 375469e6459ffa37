package engine

import "context"

// CtxMutex is a mutex whose waiters honour their context.
type CtxMutex struct{ held chan struct{} }

func NewMutex() CtxMutex { return CtxMutex{make(chan struct{}, 1)} }

func (s CtxMutex) Lock(ctx context.Context) error {
	select {
	case s.held <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s CtxMutex) Unlock() { <-s.held }
