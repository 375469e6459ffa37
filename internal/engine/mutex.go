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

// TryLock locks the mutex if it is free, and reports whether it did.
func (s CtxMutex) TryLock() bool {
	select {
	case s.held <- struct{}{}:
		return true
	default:
		return false
	}
}

// Unlock unlocks the mutex.
func (s CtxMutex) Unlock() { <-s.held }
