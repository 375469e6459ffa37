package engine

import "context"

// CtxMutex is a mutex whose Lock ends when the caller's context ends.
type CtxMutex struct{ held chan struct{} }

// NewMutex returns an unlocked mutex.
func NewMutex() CtxMutex { return CtxMutex{make(chan struct{}, 1)} }

// Lock locks the mutex. It returns the error of ctx if that ends first.
func (s CtxMutex) Lock(ctx context.Context) error {
	select {
	case s.held <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Unlock unlocks the mutex.
func (s CtxMutex) Unlock() { <-s.held }
