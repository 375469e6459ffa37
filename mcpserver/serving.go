package mcpserver

import (
	"context"
	"errors"
	"fmt"

	"github.com/varve-db/varve"
)

// A server outlives its store: a user or a program may remove, restore or switch the folder of the
// store (varve.ErrReplaced). The first call that finds this out gets the error. Before the error is
// returned, the server opens the store that is now at the path with Options.Reopen, and every later
// call uses it.

// during runs f while the served store is not exchanged.
func (s *server) during(ctx context.Context, f func() error) error {
	s.mu.RLock()
	st := s.st
	err := st.Admin().InPlace()
	if err == nil {
		err = f()
	}
	s.mu.RUnlock()
	if errors.Is(err, varve.ErrReplaced) {
		return s.reopen(ctx, st, err)
	}
	return err
}

// store returns the store that is served now, and its graph.
func (s *server) store() (*varve.Store, *view) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.st, s.view
}

// reopen exchanges a store whose folder was replaced, unless another call has done so, and returns
// the error for the call.
func (s *server) reopen(ctx context.Context, was *varve.Store, err error) error {
	if s.o.Reopen == nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.st == was {
		next, rerr := s.o.Reopen(context.WithoutCancel(ctx), was)
		if rerr != nil {
			return fmt.Errorf("%w; the store that is now at its path cannot be opened: %w", err, rerr)
		}
		s.st, s.view = next, newView(next, s.o.GraphBytes, s.unreadable, s.o.Clock)
	}
	if errors.Is(err, varve.ErrOutcomeUnknown) {
		return fmt.Errorf("%w; the store that is now at its path is served from here on → check whether the call was done "+
			"before you repeat it", err)
	}
	return fmt.Errorf("%w; the store that is now at its path is served from here on → repeat the call", err)
}
