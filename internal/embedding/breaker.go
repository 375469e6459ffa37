package embedding

import (
	"errors"
	"sync"
	"time"

	"github.com/varve-db/varve/errs"
)

// A write must not wait for an embedder that is down. After breakerFailures consecutive failures of calls that a write
// or a query waits for, such calls fail at once with an *errs.EmbedderError until a back-off has passed. The first call
// after that is a probe, which asks the embedder alone. If the probe fails, the back-off doubles, from breakerFirst up
// to breakerLast.
const (
	breakerFailures = 3
	breakerFirst    = 5 * time.Second
	breakerLast     = 5 * time.Minute
)

// waiter is the kind of caller that waits for a call of the embedder. The Breaker treats the kinds differently.
type waiter int

const (
	forWrite waiter = iota // a write or a query: its failures count toward the breaker
	forQueue               // the background queue: it has its own back-off while the breaker is closed
	forUser                // Reembed or Pending, which a user started: never refused
)

// standing is the record of an embedder's last failures, and of the time until which the embedder is not called.
// Processes share the record in a file (Kept).
type standing struct {
	Failures int           `json:"failures"` // number of failures in a row
	Since    time.Time     `json:"since"`    // time of the first of them
	Last     time.Time     `json:"last"`     // time of the last of them
	Next     time.Time     `json:"next"`     // time of the next probe, while the embedder is down
	Wait     time.Duration `json:"wait"`     // the back-off that ends at Next
	Error    string        `json:"error"`    // text of the last error
	Claim    time.Time     `json:"claim"`    // time until which another process has reserved the probe of the embedder
}

// next returns the earliest time at which the embedder may be called again.
func (s *standing) next() time.Time {
	if s.Claim.After(s.Next) {
		return s.Claim
	}
	return s.Next
}

func (s *standing) down() bool { return s.Failures >= breakerFailures }

// due reports whether the back-off after the last failure has passed and no other process is probing. A clock
// that is set back does not lengthen the back-off.
func (s *standing) due(now time.Time) bool {
	ahead := func(t time.Time, most time.Duration) bool { return now.Before(t) && t.Sub(now) <= most }
	return !ahead(s.Next, s.Wait) && !ahead(s.Claim, breakerLast)
}

// Breaker decides whether the embedder may be called. After several failures in a row, it refuses calls for a while.
type Breaker struct {
	Clock func() time.Time
	Kept  *Kept // file that is shared with other processes; nil: not shared

	mu      sync.Mutex
	s       standing
	err     error // error of the last failure
	read    bool  // s has been compared with the shared file already
	works   bool  // the last call of this process succeeded
	probing bool  // a probe is in progress
}

// call is a call of the embedder that the breaker has allowed.
type call struct {
	by    waiter
	probe bool
}

// change is the way in which the result of a call changes the state of the embedder: not at all, from working to down,
// or from down to working.
type change int

const (
	unchanged change = iota
	wentDown
	cameUp
)

// enter begins a call of the embedder. caller is the kind of caller that waits for the call, and limit is the
// maximum duration of the call. If the embedder must not be called now, enter returns an *errs.EmbedderError.
func (b *Breaker) enter(caller waiter, limit time.Duration) (call, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.look()
	if !b.s.down() || caller == forUser {
		return call{by: caller}, nil
	}
	now := b.Clock()
	if b.probing || !b.s.due(now) {
		return call{}, b.refusal()
	}
	b.probing = true
	if b.Kept != nil {
		s := b.s
		s.Claim = now.Add(limit)
		b.Kept.save(&s)
	}
	return call{by: caller, probe: true}, nil
}

// look reads what other processes have recorded about the embedder. It does nothing while this process probes the
// embedder, and, after the first call, while the embedder is not down.
func (b *Breaker) look() {
	if b.Kept == nil || b.probing || b.read && !b.s.down() {
		return
	}
	b.read = true
	s, ok := b.Kept.load(b.Clock())
	if !ok {
		b.s, b.err = standing{}, nil
		return
	}
	if b.err == nil || b.err.Error() != s.Error {
		b.err = errors.New(s.Error)
	}
	b.s = s
}

func (b *Breaker) refusal() error {
	return &errs.EmbedderError{Since: b.s.Since, Failures: b.s.Failures, Next: b.s.next(), Err: b.err}
}

// leave ends a call of the embedder and records its result: err is the error of the call, nil for a success. A failure
// counts only if the call was a probe, or if a write or a query waited for the call and the embedder does not count as
// down yet. If ended is true, the caller stopped waiting before the embedder answered, and leave records neither a
// success nor a failure. leave returns the resulting change of the state.
func (b *Breaker) leave(c call, err error, ended bool) change {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.probe {
		b.probing = false
	}
	switch {
	case ended:
		if c.probe {
			b.s.Claim = time.Time{}
			b.save() // the next call of any process may probe
		}
		return unchanged
	case err == nil:
		was := b.s.down()
		if b.s.Failures > 0 && b.Kept != nil {
			b.Kept.drop()
		}
		b.s, b.err, b.works = standing{}, nil, true
		if was {
			return cameUp
		}
		return unchanged
	}
	b.works = false
	if c.by != forWrite && !c.probe || b.s.down() && !c.probe {
		return unchanged
	}
	now := b.Clock()
	if b.s.Failures == 0 {
		b.s.Since = now
	}
	b.s.Failures++
	b.s.Claim = time.Time{}
	b.s.Last, b.s.Error, b.err = now, err.Error(), err
	var told change
	switch {
	case c.probe:
		b.s.Wait = min(2*b.s.Wait, breakerLast)
		b.s.Next = now.Add(b.s.Wait)
	case b.s.down():
		b.s.Wait, b.s.Next, told = breakerFirst, now.Add(breakerFirst), wentDown
	}
	b.save()
	return told
}

func (b *Breaker) save() {
	if b.Kept != nil {
		b.Kept.save(&b.s)
	}
}

// rest returns the time for which background work must wait before it calls an embedder that is down. It returns 0 if
// the embedder is not down.
func (b *Breaker) rest() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.s.down() {
		return 0
	}
	if b.probing {
		return breakerFirst
	}
	return max(min(b.s.next().Sub(b.Clock()), breakerLast), time.Millisecond)
}

// Health describes the state of the embedder, and its last failures.
type Health struct {
	State    State
	Since    time.Time
	Failures int
	Err      error
	Next     time.Time
}

// State is the state of an embedder.
type State string

// The states of an embedder.
const (
	StateNone    State = ""        // there is no embedder
	StateUnknown State = "unknown" // not called yet
	StateWorks   State = "works"
	StateFailing State = "failing" // the last calls failed, but it is still called
	StateDown    State = "down"    // not called until Next
	StateProbing State = "probing" // down, with a probe in progress
)

// Health returns the state of the embedder, including failures recorded by other processes.
func (b *Breaker) Health() Health {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.look()
	h := Health{State: StateUnknown, Since: b.s.Since, Failures: b.s.Failures, Err: b.err}
	switch {
	case b.probing:
		h.State, h.Next = StateProbing, b.s.next()
	case b.s.down():
		h.State, h.Next = StateDown, b.s.next()
	case b.s.Failures > 0:
		h.State = StateFailing
	case b.works:
		h.State = StateWorks
	}
	return h
}

// answered reports whether err means that the embedder has answered and refused the texts. Such an error has a method
// Answered, as the errors of package vector/embed do. After an answer, the next call is not expected to wait long.
func answered(err error) bool {
	var a interface{ Answered() bool }
	return errors.As(err, &a) && a.Answered()
}
