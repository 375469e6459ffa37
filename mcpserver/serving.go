package mcpserver

import (
	"context"
	"errors"
	"fmt"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/project"
)

// during runs f with the data that the calls of the served store share. If this call finds that the store was replaced,
// the error matches varve.ErrReplaced, because everything that the agent was told before concerns the previous store.
// Later calls use the new store. If a call of another client or another server has found the replacement first, the
// next call of each session does nothing and returns the same error, once.
func (s *host) during(ctx context.Context, f func(s *server) error) error {
	was := s.served.Current()
	c, _ := ctx.Value(callerKey{}).(*caller)
	other := false
	err := s.served.Use(ctx, func(st *varve.Store) error {
		if other = c.isNew(st); other {
			return nil
		}
		return f(s.serverFor(st))
	})
	switch {
	case other: // Use does not get this error: it would exchange the store
		return fmt.Errorf("%w; a different store is now served, and nothing was done → repeat the call",
			varve.ErrReplaced)
	case !errors.Is(err, varve.ErrReplaced) || s.served.Current() == was:
		return err
	}
	c.forgetStore()
	if errors.Is(err, varve.ErrOutcomeUnknown) {
		return fmt.Errorf("%w → check whether the call was done before you repeat it", err)
	}
	return fmt.Errorf("%w → repeat the call", err)
}

// serverFor returns the data that the calls of one store share. It creates the data at the first call of that
// store.
func (s *host) serverFor(st *varve.Store) *server {
	s.latest.Lock()
	defer s.latest.Unlock()
	if l := s.latest.of; l != nil && l.st == st {
		return l
	}
	next := &server{host: s, st: st, view: newView(st, s.o.GraphBytes, s.unreadable, s.o.Clock),
		deleted: &project.Deleted{}}
	if s.latest.of == nil || st == s.served.Current() { // not for a late call of a replaced store
		s.latest.of = next
	}
	return next
}
