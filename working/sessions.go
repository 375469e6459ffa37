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

// DefaultOpen is the default of SessionsOptions.Open.
const DefaultOpen = 1000

// Reason is the reason for which a session is closed.
type Reason string

// The reasons.
const (
	Ended   Reason = "ended"   // a call of Sessions.End
	Idle    Reason = "idle"    // a call of Sessions.Sweep
	Evicted Reason = "evicted" // more sessions than SessionsOptions.Open were open
	Closing Reason = "closing" // a call of Sessions.Close
)

// SessionsOptions are the options of Sessions. The zero value has the defaults.
type SessionsOptions struct {
	Open   int     // maximum number of unused sessions that stay open; 0: DefaultOpen
	Memory Options // options of each Memory
	// OnClose runs before a session is closed, while no other caller can use the session. It can consolidate the
	// session; if the home is in the process, this is the last opportunity. On an error the session stays open. It
	// must not use the same scope through Sessions.
	OnClose func(ctx context.Context, m *Memory, why Reason) error
	// Failed receives errors that no caller waits for: errors of OnClose or of the home when a
	// session is evicted.
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
	idle   *list.List // list of *opened: unused sessions, the least recently used first
	closed bool
}

type opened struct {
	scope Scope
	m     *Memory
	err   error // the error of Open
	users int
	used  time.Duration // time of the last use
	at    *list.Element // element in idle; nil: the session is in use, or being closed
	ready chan struct{} // closed once m or err is set
	gone  chan struct{} // set while the session is being closed, and closed afterwards; otherwise nil
	free  chan struct{} // closed when the session is unused; made by a goroutine that waits for that
}

// NewSessions returns an empty set of sessions. nil options mean the defaults.
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

// With runs fn on the working memory of a scope, which it opens if necessary and keeps open while
// fn runs. Several callers may use one scope at a time.
func (s *Sessions) With(ctx context.Context, scope Scope, fn func(*Memory) error) error {
	o, err := s.acquire(ctx, scope)
	if err != nil {
		return err
	}
	defer s.evict(context.WithoutCancel(ctx))
	defer s.release(o)
	return fn(o.m)
}

// Len returns the number of open sessions.
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

// use marks a session as used; release ends the use. use is called with mu held, release without.
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

// evict closes the least recently used sessions beyond the limit.
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

// take removes an idle session from the list and marks it as being closed. The caller holds mu.
func (s *Sessions) take(e *list.Element) *opened {
	o := s.idle.Remove(e).(*opened)
	o.at, o.gone = nil, make(chan struct{})
	return o
}

// shut closes a session that take has returned. On an error the session is open again, as the most
// recently used one, so that another one is tried before it. If drop is set, the scope is removed
// before any caller can open it again: data written in between would be lost.
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
// scope is removed with everything in it. A session that is not open is opened first.
func (s *Sessions) End(ctx context.Context, scope Scope, drop bool) error {
	for {
		o, err := s.acquire(ctx, scope)
		if err != nil {
			return err
		}
		s.release(o)
		s.mu.Lock()
		if o.at == nil { // the session is in use or being closed; acquire waits for the latter
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

// Sweep closes the sessions that were unused for at least idle, and returns their number.
func (s *Sessions) Sweep(ctx context.Context, idle time.Duration) (int, error) {
	return s.shutAll(ctx, Idle, func(o *opened) bool { return s.clock.Mono()-o.used >= idle })
}

// Close closes all sessions that are not in use. It returns an error if sessions are in use, or if
// their OnClose fails; these stay open. No session can be opened afterwards.
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
