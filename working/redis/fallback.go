package redis

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/working"
)

// EventKind is the kind of an Event.
type EventKind string

// The kinds of events.
const (
	FallbackBegan EventKind = "fallback began" // a fallback begins; Err is the reason
	FallbackEnded EventKind = "fallback ended" // a fallback has ended; Written has its data, which are not in Redis
)

// Event reports the beginning or the end of a fallback. Events are delivered in order, one after another.
type Event struct {
	Kind    EventKind
	Time    time.Time
	Err     error
	Written []Written
}

// Written is the data that was written to a scope during a fallback. At the beginning of a fallback every scope is
// empty, because its data in Redis cannot be read. At the end, the data written during the fallback is in no home: to
// keep the data, the program must write it to one.
type Written struct {
	Scope       working.Scope
	State       *working.Snapshot
	Checkpoints []*working.Snapshot
	Err         error // error for content that could not be read
}

// standIn is the fallback: an in-process home that is used while Redis cannot be reached.
type standIn struct {
	ping  func(context.Context) error
	every time.Duration
	tell  func(Event)
	clock working.Clock
	local atomic.Pointer[working.Local] // the in-process home; nil: Redis is used

	mu      sync.RWMutex // read-locked during an operation on local, locked while a fallback begins or ends
	closed  bool
	stop    context.CancelFunc
	watch   sync.WaitGroup
	written []Written
}

func newStandIn(o *Options, ping func(context.Context) error) *standIn {
	s := &standIn{ping: ping, every: o.RetryAfter, tell: o.OnEvent, clock: o.Clock}
	if s.every == 0 {
		s.every = time.Second
	}
	if s.tell == nil {
		s.tell = func(Event) {}
	}
	if s.clock == nil {
		s.clock = working.SystemClock()
	}
	return s
}

func (s *standIn) active() bool { return s.local.Load() != nil }

// do performs an operation in the fallback's in-process home. It returns false, and performs nothing, if no fallback
// is active.
func (s *standIn) do(ctx context.Context, r *working.Request) (working.Result, bool, error) {
	if !s.active() {
		return working.Result{}, false, nil
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	l := s.local.Load()
	if l == nil {
		return working.Result{}, false, nil
	}
	res, err := l.Do(ctx, r)
	return res, true, err
}

// begin starts the fallback because of cause, an error of Redis. It also starts a goroutine that ends the fallback
// as soon as Redis answers again.
func (s *standIn) begin(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.active() {
		return
	}
	s.local.Store(working.NewLocal(s.clock))
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	s.tell(Event{Kind: FallbackBegan, Time: s.clock.Wall(), Err: cause})
	s.watch.Go(func() { s.look(ctx) })
}

func (s *standIn) look(ctx context.Context) {
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if s.ping(ctx) != nil {
				continue
			}
			s.mu.Lock()
			s.end(nil)
			s.mu.Unlock()
			return
		}
	}
}

// end ends the fallback. cause is nil if Redis answers again. The caller holds mu, so no operation uses local at
// the same time.
func (s *standIn) end(cause error) {
	l := s.local.Load()
	if l == nil {
		return
	}
	s.stop()
	all := collect(l)
	s.written = append(s.written, all...)
	s.local.Store(nil)
	s.tell(Event{Kind: FallbackEnded, Time: s.clock.Wall(), Err: cause, Written: all})
}

func (s *standIn) close() {
	s.mu.Lock()
	s.closed = true
	s.end(errs.ErrClosed)
	s.mu.Unlock()
	s.watch.Wait()
}

// collect reads the data of all scopes of the fallback. The in-process home cannot fail as a whole, but a single value
// may be unreadable.
func collect(l *working.Local) []Written {
	ctx := context.Background()
	var all []Written
	for scope := range l.Scopes(ctx) {
		w := Written{Scope: scope}
		read := func(id string) *working.Snapshot {
			res, err := l.Do(ctx, &working.Request{Scope: scope, Op: working.OpLoad{ID: id}})
			if err != nil {
				w.Err = errors.Join(w.Err, err)
				return nil
			}
			snap, err := working.NewSnapshot(&res)
			w.Err = errors.Join(w.Err, err)
			return snap
		}
		w.State = read("")
		res, err := l.Do(ctx, &working.Request{Scope: scope, Op: working.OpCheckpoints{}})
		w.Err = errors.Join(w.Err, err)
		for _, cp := range res.Checkpoints {
			w.Checkpoints = append(w.Checkpoints, read(cp.ID))
		}
		if !w.empty() {
			all = append(all, w)
		}
	}
	return all
}

// empty reports whether nothing was written to the scope.
func (w *Written) empty() bool {
	return w.Err == nil && len(w.Checkpoints) == 0 && len(w.State.Values) == 0 && len(w.State.Notes) == 0 &&
		w.State.Task == nil
}

// Meanwhile returns the data that was written during the fallbacks that have ended. The Home no longer has this data
// afterwards. Meanwhile is for programs that do not set Options.OnEvent.
func (h *Home) Meanwhile() []Written {
	if h.stand == nil {
		return nil
	}
	h.stand.mu.Lock()
	defer h.stand.mu.Unlock()
	all := h.stand.written
	h.stand.written = nil
	return all
}
