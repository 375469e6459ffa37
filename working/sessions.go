package working

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/varve-db/varve/errs"
)

// DefaultOpen is how many scopes Sessions keeps open when SessionsOptions says
// nothing.
const DefaultOpen = 1000

// Reason is why a session is closed.
type Reason string

// The reasons.
const (
	Ended   Reason = "ended"   // Sessions.End
	Idle    Reason = "idle"    // Sessions.Sweep
	Evicted Reason = "evicted" // more were opened than SessionsOptions.Open
	Closing Reason = "closing" // Sessions.Close
)

// SessionsOptions are options of Sessions. The zero value has the defaults.
type SessionsOptions struct {
	Open   int     // how many unused sessions stay open; 0: DefaultOpen
	Memory Options // of each
	// OnClose runs before a session is closed, while no other caller can use it: the place to
	// consolidate, and the last chance to do so if the home is in the process. On an error the
	// session stays open. It must not ask Sessions for the same scope.
	OnClose func(ctx context.Context, m *Memory, why Reason) error
	// Failed receives errors that no caller waits for: those of OnClose or of the home when a
	// session was to be evicted.
	Failed func(s Scope, err error)
}

// Sessions keeps the working memory of many scopes open in one host: scopes are opened on use, and
// the least recently used are closed. The contents of a durable home are kept. It is safe for
// concurrent use.
type Sessions struct {
	home  Home
	opts  SessionsOptions
	clock Clock

	mu     sync.Mutex
	open   map[Scope]*opened
	idle   *list.List // of *opened that nobody uses, the least recently used first
	closed bool
}

type opened struct {
	scope Scope
	m     *Memory
	err   error // of Open
	users int
	used  time.Duration // when it was last used
	at    *list.Element // in idle; nil: in use, or being closed
	ready chan struct{} // closed when m or err is set
	gone  chan struct{} // not nil while it is being closed; closed after
	free  chan struct{} // made by who waits until nobody uses it; closed then
}

// NewSessions makes an empty set. nil options are the zero ones.
func NewSessions(h Home, o *SessionsOptions) (*Sessions, error) {
	s := &Sessions{home: h, open: map[Scope]*opened{}, idle: list.New()}
	if o != nil {
		s.opts = *o
	}
	if s.opts.Open < 0 {
		return nil, &errs.FieldError{Field: "SessionsOptions.Open", Value: fmt.Sprint(s.opts.Open),
			Err: errors.New("must not be negative")}
	}
	if s.opts.Open == 0 {
		s.opts.Open = DefaultOpen
	}
	if s.opts.Failed == nil {
		s.opts.Failed = func(Scope, error) {}
	}
	if s.opts.OnClose == nil {
		s.opts.OnClose = func(context.Context, *Memory, Reason) error { return nil }
	}
	s.clock = s.opts.Memory.Clock
	if s.clock == nil {
		s.clock = SystemClock()
	}
	return s, s.opts.Memory.Validate()
}

// With runs fn on the working memory of a scope, which is opened if it is not
// and stays open as long as fn runs. Many may use one scope at a time.
func (s *Sessions) With(ctx context.Context, scope Scope, fn func(*Memory) error) error {
	o, err := s.acquire(ctx, scope)
	if err != nil {
		return err
	}
	defer s.evict(context.WithoutCancel(ctx))
	defer s.release(o)
	return fn(o.m)
}

// Len is how many are open.
func (s *Sessions) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

func (s *Sessions) acquire(ctx context.Context, scope Scope) (*opened, error) {
	for {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return nil, errs.ErrClosed
		}
		o := s.open[scope]
		if o == nil {
			o = &opened{scope: scope, users: 1, ready: make(chan struct{})}
			s.open[scope] = o
			s.mu.Unlock()
			return s.attach(ctx, o)
		}
		if gone := o.gone; gone != nil {
			s.mu.Unlock()
			select {
			case <-gone:
				continue
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		s.use(o)
		s.mu.Unlock()
		select {
		case <-o.ready:
			if o.err == nil {
				return o, nil
			}
			return nil, o.err
		case <-ctx.Done():
			s.release(o)
			return nil, ctx.Err()
		}
	}
}

func (s *Sessions) attach(ctx context.Context, o *opened) (*opened, error) {
	opts := s.opts.Memory
	opts.Clock = s.clock
	o.m, o.err = Open(ctx, s.home, o.scope, &opts)
	if o.err != nil {
		s.mu.Lock()
		delete(s.open, o.scope)
		s.mu.Unlock()
	}
	close(o.ready)
	if o.err != nil {
		return nil, o.err
	}
	return o, nil
}

// use and release are called with, and without, mu held.
func (s *Sessions) use(o *opened) {
	o.users++
	if o.at != nil {
		s.idle.Remove(o.at)
		o.at = nil
	}
}

func (s *Sessions) release(o *opened) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.users--; o.users == 0 && s.open[o.scope] == o {
		o.used = s.clock.Mono()
		o.at = s.idle.PushBack(o)
		if o.free != nil {
			close(o.free)
			o.free = nil
		}
	}
}

// evict closes the least recently used beyond the limit.
func (s *Sessions) evict(ctx context.Context) {
	for {
		s.mu.Lock()
		front := s.idle.Front()
		if len(s.open) <= s.opts.Open || front == nil {
			s.mu.Unlock()
			return
		}
		o := s.take(front)
		s.mu.Unlock()
		if err := s.shut(ctx, o, Evicted, false); err != nil {
			s.opts.Failed(o.scope, err)
			return
		}
	}
}

// take makes a session one that is being closed. Called with mu held.
func (s *Sessions) take(e *list.Element) *opened {
	o := s.idle.Remove(e).(*opened)
	o.at, o.gone = nil, make(chan struct{})
	return o
}

// shut closes a session that take has taken. On an error it is open again, as the
// most recently used one: another one is tried before it. What is to be dropped
// goes before anybody can open it again: what he wrote would go with it.
func (s *Sessions) shut(ctx context.Context, o *opened, why Reason, drop bool) error {
	err := s.opts.OnClose(ctx, o.m, why)
	if err == nil && drop {
		_, err = s.home.Do(ctx, &Request{Scope: o.scope, Op: OpDrop{}})
	}
	if err == nil {
		err = s.home.Release(ctx, o.scope)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		delete(s.open, o.scope)
		err = o.m.Close()
	} else {
		o.at = s.idle.PushBack(o)
	}
	close(o.gone)
	o.gone = nil
	return err
}

// End closes a finished session once no caller uses it: OnClose runs, then, if drop is set, the
// scope is removed with everything in it. A session that is not open is opened for that.
func (s *Sessions) End(ctx context.Context, scope Scope, drop bool) error {
	for {
		o, err := s.acquire(ctx, scope)
		if err != nil {
			return err
		}
		s.release(o)
		s.mu.Lock()
		if o.at == nil { // somebody uses it, or closes it, which acquire waits for
			var free chan struct{}
			if o.users > 0 {
				if o.free == nil {
					o.free = make(chan struct{})
				}
				free = o.free
			}
			s.mu.Unlock()
			if free == nil {
				continue
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-free:
				continue
			}
		}
		s.take(o.at)
		s.mu.Unlock()
		return s.shut(ctx, o, Ended, drop)
	}
}

// Sweep closes the sessions that were not used for this long, and returns their number.
func (s *Sessions) Sweep(ctx context.Context, idle time.Duration) (int, error) {
	return s.shutAll(ctx, Idle, func(o *opened) bool { return s.clock.Mono()-o.used >= idle })
}

// Close closes all sessions that are not in use; those in use are an error, and so are those whose
// OnClose fails, which stay open. Nothing can be opened afterwards.
func (s *Sessions) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	_, err := s.shutAll(ctx, Closing, func(*opened) bool { return true })
	if n := s.Len(); n > 0 {
		err = errors.Join(err, fmt.Errorf("working: %d sessions are still open", n))
	}
	return err
}

func (s *Sessions) shutAll(ctx context.Context, why Reason, which func(*opened) bool) (n int, err error) {
	s.mu.Lock()
	var all []*opened
	for e := s.idle.Front(); e != nil; {
		next := e.Next()
		if which(e.Value.(*opened)) {
			all = append(all, s.take(e))
		}
		e = next
	}
	s.mu.Unlock()
	for _, o := range all {
		if e := s.shut(ctx, o, why, false); e != nil {
			err = errors.Join(err, fmt.Errorf("closing %s: %w", o.scope.Key(), e))
			continue
		}
		n++
	}
	return n, err
}
