package engine

import "context"

// CtxMutex is a mutex whose Lock returns early if its context ends.
type CtxMutex struct{ held chan struct{} }

// NewMutex returns an unlocked mutex.
func NewMutex() CtxMutex { return CtxMutex{make(chan struct{}, 1)} }

// Lock locks the mutex. It returns the error of ctx if ctx ends before the mutex is free.
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
