package served

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/singleflight"

	"github.com/varve-db/varve"
)

// Options are the settings of a Store.
type Options struct {
	// Open opens the store that is now at the path of one that was replaced. It must repeat all the checks with which
	// the first store was opened, and must create nothing. nil: a replaced store is not exchanged.
	Open func(ctx context.Context) (*varve.Store, error)
	// Close closes a store that was replaced, when it has no use any more. nil: Store.Close, without its error.
	Close func(st *varve.Store)
}

// Store holds the store that is served now. It is safe for concurrent use.
type Store struct {
	o       Options
	first   *varve.Store
	flight  singleflight.Group // opens the next store once for all that wait for it
	opening sync.Mutex         // held to open the next store; taken before mu
	closing sync.WaitGroup     // stores that open has replaced and closes; added to with opening held

	mu    sync.Mutex
	now   *held
	all   map[*varve.Store]*held // those that are served or in use
	ended bool
	stop  context.CancelFunc // ends the opening of the next store
}

// held is a store that is served now, or is in use.
type held struct {
	st       *varve.Store
	uses     int
	replaced bool          // another one is served
	left     chan struct{} // closed when another one is served
}

// New returns a Store that serves st, which the caller closes.
func New(st *varve.Store, o Options) *Store {
	if o.Close == nil {
		o.Close = func(st *varve.Store) { _ = st.Close() } // it returns that its folder was replaced
	}
	now := &held{st: st, left: make(chan struct{})}
	return &Store{o: o, first: st, now: now, all: map[*varve.Store]*held{st: now}}
}

// Only returns a Store that serves st and no other one.
func Only(st *varve.Store) *Store { return New(st, Options{}) }

// Current returns the store that is served now. It may be closed at any time after another one has taken its place.
func (s *Store) Current() *varve.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now.st
}

// pinned is the key of the store of Pinned in a context.
type pinned struct{}

// Pinned returns a context for calls that may use only st, because only for st it was checked that they may. While
// another store is served, Acquire and Use with this context return an error that matches varve.ErrReplaced.
func Pinned(ctx context.Context, st *varve.Store) context.Context {
	return context.WithValue(ctx, pinned{}, st)
}

// may returns an error if a context is pinned to another store than st.
func may(ctx context.Context, st *varve.Store) error {
	if only, ok := ctx.Value(pinned{}).(*varve.Store); ok && only != st {
		return fmt.Errorf("%w; another one is served from here on: repeat the call", varve.ErrReplaced)
	}
	return nil
}

// Acquire returns the store that is at its path now, open until Release is called with it. If it was replaced, Acquire
// exchanges it first.
func (s *Store) Acquire(ctx context.Context) (*varve.Store, error) {
	for {
		st := s.use()
		if err := may(ctx, st); err != nil {
			s.Release(st)
			return nil, err
		}
		err := st.Admin().InPlace()
		if err == nil {
			return st, nil
		}
		if errors.Is(err, varve.ErrReplaced) {
			err = s.exchange(ctx, st, err)
		}
		s.Release(st)
		if err != nil {
			return nil, err
		}
	}
}

// Left returns a channel that is closed when s serves another store than st. The caller has acquired st and has not
// released it yet.
func (s *Store) Left(st *varve.Store) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[st].left
}

// Release ends a use of a store that Acquire has returned.
func (s *Store) Release(st *varve.Store) {
	s.mu.Lock()
	h := s.all[st]
	h.uses--
	unused := h.uses == 0 && h.replaced
	if unused {
		delete(s.all, st)
	}
	s.mu.Unlock()
	if unused {
		s.o.Close(st)
	}
}

// Use calls f with the store that is served now, which stays open meanwhile. If the store was replaced, before f or
// while it ran, Use exchanges it and returns an error that matches varve.ErrReplaced, for the caller to decide whether
// the call is repeated on the other store.
func (s *Store) Use(ctx context.Context, f func(st *varve.Store) error) error {
	st := s.use()
	defer s.Release(st)
	if err := may(ctx, st); err != nil {
		return err
	}
	err := st.Admin().InPlace()
	if err == nil {
		err = f(st)
	}
	if errors.Is(err, varve.ErrReplaced) {
		return s.Replaced(ctx, st, err)
	}
	return err
}

// Replaced exchanges the store st, unless that is done already. err, which matches varve.ErrReplaced, is the error of a
// call of st. Replaced returns an error that matches err, and says whether the store that is now at the path is served.
func (s *Store) Replaced(ctx context.Context, st *varve.Store, err error) error {
	if s.o.Open == nil {
		return err
	}
	if failed := s.exchange(ctx, st, err); failed != nil {
		return failed
	}
	return fmt.Errorf("%w; the store that is now at its path is served from here on", err)
}

// End cancels the opening of a store, waits until it has ended, and closes the store that is served now, if it is not
// the first one. No store is opened after that.
func (s *Store) End() {
	s.mu.Lock()
	before := s.ended
	s.ended = true
	if s.stop != nil {
		s.stop()
	}
	s.mu.Unlock()
	s.opening.Lock()
	defer s.opening.Unlock()
	s.closing.Wait()
	if last := s.Current(); !before && last != s.first {
		s.o.Close(last)
	}
}

// begin registers stop, with which End cancels the opening of a store. It returns false after End: no store may be
// opened then.
func (s *Store) begin(stop context.CancelFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop = stop
	return !s.ended
}

// use returns the store that is served now, with one more use.
func (s *Store) use() *varve.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.uses++
	return s.now.st
}

// exchange opens the store that is now at the path of was, which was replaced, and serves it. why is the error that
// reported the replacement; every error of exchange matches it.
func (s *Store) exchange(ctx context.Context, was *varve.Store, why error) error {
	if s.o.Open == nil {
		return why
	}
	// For all calls that wait: the opening continues when this call ends.
	opened := s.flight.DoChan("", func() (any, error) {
		return nil, s.open(context.WithoutCancel(ctx), was)
	})
	select {
	case r := <-opened:
		if r.Err != nil {
			return fmt.Errorf("%w; the store that is now at its path cannot be opened: %w", why, r.Err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", why, ctx.Err())
	}
}

// open opens the store that is at the path of was, and serves it, unless that is done already.
func (s *Store) open(ctx context.Context, was *varve.Store) error {
	s.opening.Lock()
	defer s.opening.Unlock()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if !s.begin(stop) {
		return varve.ErrClosed
	}
	if s.Current() != was {
		return nil
	}
	next, err := s.o.Open(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	before := s.now
	before.replaced = true
	close(before.left)
	s.now = &held{st: next, left: make(chan struct{})}
	s.all[next] = s.now
	unused := before.uses == 0
	if unused {
		delete(s.all, was)
	}
	s.mu.Unlock()
	if unused { // the calls that wait for the next store do not wait for this
		s.closing.Go(func() { s.o.Close(was) })
	}
	return nil
}
