package mcpserver

import (
	"context"
	"errors"
	"fmt"

	"github.com/varve-db/varve"
)

// A server outlives its store: people and programs remove, restore and switch the folder under it
// (varve.ErrReplaced). The first call that comes upon that gets the error. Before it is answered the server has
// Options.Reopen open what is at the path by then, and every later call works on that.

// during runs f on the store that is served, which is not exchanged meanwhile.
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

// store returns the store that is served just now, and its graph.
func (s *server) store() (*varve.Store, *view) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.st, s.view
}

// reopen exchanges a store whose folder was replaced, unless another call has done it, and returns the error that
// the call gets which came upon it.
func (s *server) reopen(ctx context.Context, was *varve.Store, err error) error {
	if s.o.Reopen == nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.st == was {
		next, rerr := s.o.Reopen(context.WithoutCancel(ctx), was)
		if rerr != nil {
			return fmt.Errorf("%w; what is at its path now cannot be served: %w", err, rerr)
		}
		s.st, s.view = next, newView(next, s.o.GraphBytes, s.unreadable, s.o.Clock)
	}
	if errors.Is(err, varve.ErrOutcomeUnknown) {
		return fmt.Errorf("%w; the store that is there now is served from here on: check whether the call was done before "+
			"you repeat it", err)
	}
	return fmt.Errorf("%w; the store that is there now is served from here on: repeat the call", err)
}
