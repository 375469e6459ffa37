package memorystores

import (
	"context"

	"github.com/varve-db/varve"
)

// Lease is a use of a store by another server than this API: the store stays open until Release is called.
type Lease struct {
	s       *Stores
	h       *handle
	listens bool
}

// Lend returns the store with an id; Status tells what its error means for a client. A request that listens lasts until
// its client ends it, and must end when Ended is closed. Another one writes between Writing and its end.
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

// listen changes the number of the uses of a handle that last until their clients end them.
func (s *Stores) listen(h *handle, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.listens += by; by > 0 {
		s.onlyListens(h)
	}
}

// Store returns the store.
func (l *Lease) Store() *varve.Store { return l.h.store }

// Writing begins a write to the store, which is not archived before the caller has called end. It returns an error if
// the store is archived. It may be called for any request that has a lease of the same store, as long as it is open.
func (l *Lease) Writing(ctx context.Context) (end func(), err error) { return l.h.writing(ctx) }

// Archived reports whether nothing may be written to the store.
func (l *Lease) Archived() bool { return !l.h.config().ArchivedAt.IsZero() }

// Ended is closed when the store is to be closed: it is deleted, was replaced, or another one needs its place.
func (l *Lease) Ended() <-chan struct{} { return l.h.leave }

// Value returns what the first call has made, as long as the store is open.
func (l *Lease) Value(make func(st *varve.Store) any) any {
	l.h.once.Do(func() { l.h.value = make(l.h.store) })
	return l.h.value
}

// Release ends the use.
func (l *Lease) Release() {
	if l.listens {
		l.s.listen(l.h, -1)
	}
	l.s.release(l.h)
}

// Status returns the status and the text of the answer to a request that failed.
func Status(ctx context.Context, err error) (status int, text string) {
	e := told(ctx, err)
	return e.status, e.text
}
