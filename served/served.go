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
	// Open opens the store that is now at the path of a store that was replaced. Open must repeat all the checks with
	// which the first store was opened, and must not create a store. nil: a replaced store is not exchanged.
	Open func(ctx context.Context) (*varve.Store, error)
	// Close closes a store that was replaced, when no call uses the store any more. nil: Store.Close is called, and
	// its error is ignored.
	Close func(st *varve.Store)
}

// Store holds the store that is served now. A Store is safe for concurrent use.
type Store struct {
	o       Options
	first   *varve.Store
	flight  singleflight.Group // opens the next store once for all calls that wait for it
	opening sync.Mutex         // held to open the next store; taken before mu
	closing sync.WaitGroup     // counts the replaced stores that open is closing; Add only with opening held

	mu    sync.Mutex
	now   *held
	all   map[*varve.Store]*held // the store that is served, and replaced stores that are in use
	ended bool
	stop  context.CancelFunc // ends the opening of the next store
}

// held is a store that is served now, or that was replaced and still has uses.
type held struct {
	st       *varve.Store
	uses     int
	replaced bool          // another store is served
	left     chan struct{} // closed when another store is served
}

// New returns a Store that serves st. If st is replaced, the Store closes it with o.Close; otherwise the caller must
// close it.
func New(st *varve.Store, o Options) *Store {
	if o.Close == nil {
		o.Close = func(st *varve.Store) { _ = st.Close() } // Close fails because the folder of st was replaced
	}
	now := &held{st: st, left: make(chan struct{})}
	return &Store{o: o, first: st, now: now, all: map[*varve.Store]*held{st: now}}
}

// Only returns a Store that serves st and never exchanges it.
func Only(st *varve.Store) *Store { return New(st, Options{}) }

// Current returns the store that is served now. This store may be closed at any time if another store takes its place;
// a store from Acquire stays open until it is released.
func (s *Store) Current() *varve.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now.st
}

// pinned is the key under which Pinned puts a store into a context.
type pinned struct{}

// Pinned returns a context for calls that may use only st, for example because the caller's rights were checked only
// for st. While another store is served, Acquire and Use return an error that matches varve.ErrReplaced for such a
// context.
func Pinned(ctx context.Context, st *varve.Store) context.Context {
	return context.WithValue(ctx, pinned{}, st)
}

// checkPinned returns an error if Pinned has limited ctx to another store than st.
func checkPinned(ctx context.Context, st *varve.Store) error {
	if only, ok := ctx.Value(pinned{}).(*varve.Store); ok && only != st {
		return fmt.Errorf("%w; another store is served instead: repeat the call", varve.ErrReplaced)
	}
	return nil
}

// Acquire returns the store that is served now. The store stays open until the caller releases it with Release. If the
// folder of the store was replaced, Acquire first exchanges the store for the one that is now at its path.
func (s *Store) Acquire(ctx context.Context) (*varve.Store, error) {
	for {
		st := s.use()
		if err := checkPinned(ctx, st); err != nil {
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

// Left returns a channel that is closed when s begins to serve another store than st. The caller must have acquired st
// and must not have released it yet.
func (s *Store) Left(st *varve.Store) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[st].left
}

// Release ends one use of a store that Acquire returned. If the store was replaced and has no other use, Release
// closes the store.
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

// Use calls f with the store that is served now. The store stays open while f runs. If the folder of the store is
// replaced before f is called or while f runs, Use exchanges the store and returns an error that matches
// varve.ErrReplaced. The caller then decides whether to repeat the call with the new store.
func (s *Store) Use(ctx context.Context, f func(st *varve.Store) error) error {
	st := s.use()
	defer s.Release(st)
	if err := checkPinned(ctx, st); err != nil {
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

// Replaced exchanges the store st for the one that is now at its path, unless another call has exchanged st already.
// err is the error that a call of st returned; it must match varve.ErrReplaced. The error of Replaced matches err. Its
// text states whether the store that is now at the path has taken the place of st.
func (s *Store) Replaced(ctx context.Context, st *varve.Store, err error) error {
	if s.o.Open == nil {
		return err
	}
	if failed := s.exchange(ctx, st, err); failed != nil {
		return failed
	}
	return fmt.Errorf("%w; the new store at the same path is served instead", err)
}

// End cancels the opening of a store and waits until the opening has ended. It then closes the store that is served
// now, unless that store was given to New. After End, no store is opened any more.
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

// begin registers stop, which End calls to cancel the opening of a store. It returns false if End was called: then the
// caller must not open a store.
func (s *Store) begin(stop context.CancelFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop = stop
	return !s.ended
}

// use returns the store that is served now, and counts one more use of it.
func (s *Store) use() *varve.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.uses++
	return s.now.st
}

// exchange opens the store that is now at the path of prev, and serves it in place of prev, a store whose folder
// was replaced. cause is the error that reported the replacement; every error of exchange matches cause.
func (s *Store) exchange(ctx context.Context, prev *varve.Store, cause error) error {
	if s.o.Open == nil {
		return cause
	}
	// Other calls may wait for the same opening, so it continues when the context of this call ends.
	opened := s.flight.DoChan("", func() (any, error) {
		return nil, s.open(context.WithoutCancel(ctx), prev)
	})
	select {
	case r := <-opened:
		if r.Err != nil {
			return fmt.Errorf("%w; the new store at the same path cannot be opened: %w", cause, r.Err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", cause, ctx.Err())
	}
}

// open opens the store that is now at the path of prev and serves it in place of prev. It does nothing if prev is not
// served any more.
func (s *Store) open(ctx context.Context, prev *varve.Store) error {
	s.opening.Lock()
	defer s.opening.Unlock()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if !s.begin(stop) {
		return varve.ErrClosed
	}
	if s.Current() != prev {
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
		delete(s.all, prev)
	}
	s.mu.Unlock()
	if unused { // in the background: calls that wait for the next store must not wait for the closing of this one
		s.closing.Go(func() { s.o.Close(prev) })
	}
	return nil
}
