package memorystores

import (
	"context"

	"github.com/varve-db/varve"
)

// Lease is the use of a store by a server for something other than this API. The store stays open until Release is
// called.
type Lease struct {
	s       *Stores
	h       *handle
	listens bool
}

// Lend returns a lease of the store with this id. Status converts the error of Lend for the client. listens means that
// the request listens for changes: it lasts until its client ends it, and must end when Ended is closed. Any other
// request writes only between a call of Writing and a call of the function end that Writing returns.
func (s *Stores) Lend(ctx context.Context, id string, listens bool) (*Lease, error) {
	h, err := s.use(ctx, id)
	if err != nil {
		return nil, err
	}
	if listens {
		s.listen(h, 1)
	}
	return &Lease{s: s, h: h, listens: listens}, nil
}

// listen adds delta to the number of requests that use a handle to listen for changes. Such uses last until their
// clients end them.
func (s *Stores) listen(h *handle, delta int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.listens += delta; delta > 0 {
		s.onlyListens(h)
	}
}

// Store returns the store.
func (l *Lease) Store() *varve.Store { return l.h.store }

// Writing begins a write to the store, and returns an error if the store is archived. Until the caller calls end, the
// store cannot be archived. Any request that has an open lease of the store may call Writing.
func (l *Lease) Writing(ctx context.Context) (end func(), err error) { return l.h.writing(ctx) }

// Archived reports whether the store is archived, so that it must not be changed.
func (l *Lease) Archived() bool { return !l.h.config().ArchivedAt.IsZero() }

// Ended returns a channel that is closed when the caller must release the store, because the store was deleted or
// replaced, or because another store must be opened in its place.
func (l *Lease) Ended() <-chan struct{} { return l.h.leave }

// Value returns a value that the server keeps with the open store. The first call since the store was opened computes
// the value by make; later calls return the same value.
func (l *Lease) Value(make func(st *varve.Store) any) any {
	l.h.once.Do(func() { l.h.value = make(l.h.store) })
	return l.h.value
}

// Release ends the use of the store.
func (l *Lease) Release() {
	if l.listens {
		l.s.listen(l.h, -1)
	}
	l.s.release(l.h)
}

// Status returns the HTTP status and the text with which to answer a request that failed with an error.
func Status(ctx context.Context, err error) (status int, text string) {
	e := toRefusal(ctx, err)
	return e.status, e.text
}
