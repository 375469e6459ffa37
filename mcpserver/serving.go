package mcpserver

import (
	"context"
	"errors"
	"fmt"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/project"
)

// during runs f with the data that the calls of the served store share. If the call finds that the store was
// replaced, it gets that error, because everything that the agent was told before was about another store; later
// calls use the new store. If another call has found it, of another client or another server, the next call of each
// session tells the session.
func (s *host) during(ctx context.Context, f func(s *server) error) error {
	was := s.served.Current()
	c, _ := ctx.Value(callerKey{}).(*caller)
	other := false
	err := s.served.Use(ctx, func(st *varve.Store) error {
		if other = c.isNew(st); other {
			return nil
		}
		return f(s.on(st))
	})
	switch {
	case other: // not told to Use, which exchanges the store
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

// on returns what the calls of a store share.
func (s *host) on(st *varve.Store) *server {
	s.latest.Lock()
	defer s.latest.Unlock()
	if l := s.latest.of; l != nil && l.st == st {
		return l
	}
	next := &server{host: s, st: st, view: newView(st, s.o.GraphBytes, s.unreadable, s.o.Clock),
		deleted: &project.Deleted{}}
	if s.latest.of == nil || st == s.served.Current() { // not a late call of a replaced one
		s.latest.of = next
	}
	return next
}
