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

// DefaultOpen is the default value of SessionsOptions.Open.
const DefaultOpen = 1000

// Reason is the reason why a session is closed.
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
	Open   int     // number of open sessions above which unused ones are closed; 0: DefaultOpen
	Memory Options // options of each Memory
	// OnClose is called before a session is closed, while no other caller can use the session. It can store memories
	// made from the session; with the in-process home this is the last opportunity. If it returns an error, the session
	// stays open. It must not use the same scope through Sessions.
	OnClose func(ctx context.Context, m *Memory, why Reason) error
	// Failed is called with errors that no caller waits for: errors of OnClose or of the home while a session is
	// evicted.
	Failed func(s Scope, err error)
}

// Sessions keeps the working memory of many scopes open in one program. It opens a scope when the scope is used, and
// closes the least recently used ones. A durable home keeps their data. Sessions is safe for concurrent use.
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

// NewSessions returns a Sessions in which no session is open. If o is nil, the defaults are used.
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

// With calls fn with the working memory of a scope. It opens the scope if necessary, and keeps the scope open while fn
// runs. Several callers may use one scope at the same time.
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

// use marks a session as used by one more caller, and release ends one use. The caller of use holds mu; the caller of
// release does not.
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

// evict closes unused sessions, the least recently used first, as long as more than SessionsOptions.Open sessions are
// open. It ends at the first error, which it passes to SessionsOptions.Failed.
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

// take removes an unused session from the list idle and marks the session as being closed. The caller holds mu.
func (s *Sessions) take(e *list.Element) *opened {
	o := s.idle.Remove(e).(*opened)
	o.at, o.gone = nil, make(chan struct{})
	return o
}

// shut closes a session that take has returned. reason is passed to OnClose. If closing fails, the session is open
// again, and counts as the most recently used one, so that evict tries the others first. If drop is true, shut
// also removes the scope. It does so before any caller can open the scope again, because data written in between
// would be lost.
func (s *Sessions) shut(ctx context.Context, o *opened, reason Reason, drop bool) error {
	err := s.opts.OnClose(ctx, o.m, reason)
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

// End ends a session. It opens the session if it is not open, waits until no caller uses it, and calls OnClose. If drop
// is true, End then removes the scope with all its data. Finally it closes the session. If OnClose or the removal
// fails, the session stays open.
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

// Sweep closes the sessions that were not used for at least the duration idle, and returns their number.
func (s *Sessions) Sweep(ctx context.Context, idle time.Duration) (int, error) {
	return s.shutAll(ctx, Idle, func(o *opened) bool { return s.clock.Mono()-o.used >= idle })
}

// Close closes all sessions that are not in use. Sessions that are in use, or whose OnClose fails, stay open, and Close
// returns an error. After Close, no session can be opened.
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

func (s *Sessions) shutAll(ctx context.Context, reason Reason, which func(*opened) bool) (n int, err error) {
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
		if e := s.shut(ctx, o, reason, false); e != nil {
			err = errors.Join(err, fmt.Errorf("closing %s: %w", o.scope.Key(), e))
			continue
		}
		n++
	}
	return n, err
}
