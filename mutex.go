package varve

import "context"

// ctxMutex is a mutex whose waiters honour their context.
type ctxMutex struct{ held chan struct{} }

func newMutex() ctxMutex { return ctxMutex{make(chan struct{}, 1)} }

func (s ctxMutex) lock(ctx context.Context) error {
	select {
	case s.held <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s ctxMutex) unlock() { <-s.held }
