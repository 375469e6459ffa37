package engine

import "context"

// CtxMutex is a mutex whose waiters honour their context.
type CtxMutex struct{ held chan struct{} }

// NewMutex makes one that nobody has.
func NewMutex() CtxMutex { return CtxMutex{make(chan struct{}, 1)} }

// Lock waits as long as ctx does.
func (s CtxMutex) Lock(ctx context.Context) error {
	select {
	case s.held <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Unlock lets it go.
func (s CtxMutex) Unlock() { <-s.held }
