package wal

import (
	"sync"
	"time"
)

// sentry is a goroutine that waits on the shared page until the durable position changes. All goroutines of this
// process that wait for such a change share one sentry.
type sentry struct {
	mu     sync.Mutex
	moved  chan struct{} // closed when durable has moved; nil while no goroutine waits
	closed bool
	done   sync.WaitGroup
}

// sentryMost is the maximum duration of one wait. A process that has changed the durable position may have been killed
// before it woke the waiting processes.
const sentryMost = time.Second

// Moved returns a channel that is closed when any process has changed the durable position after the call. The channel
// is also closed when the log is closed, and at the latest after a second. Call Moved first and then Durable: in the
// other order, a change between the two calls would be missed.
//
// Moved returns nil if the caller must poll instead. This is so if the system cannot wait for a change of the shared
// page, with Options.Inline, and in a read-only process, which cannot register as waiting.
func (l *FileLog) Moved() <-chan struct{} {
	if l.o.Inline || l.o.ReadOnly {
		return nil
	}
	if !l.shared.Sleeps() {
		return nil
	}
	s := &l.sentry
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.moved == nil {
		s.moved = make(chan struct{})
		if s.closed {
			close(s.moved)
			return s.moved
		}
		was := l.shared.Durable()
		s.done.Go(func() {
			l.shared.RaiseSleeper(was)
			l.shared.AwaitDurable(was, sentryMost)
			s.mu.Lock()
			defer s.mu.Unlock()
			close(s.moved)
			if !s.closed {
				s.moved = nil
			}
		})
	}
	return s.moved
}

// wake wakes all processes that wait until the durable position changes. Call it after a change.
//
// A process that is about to wait first raises a word in the shared page, the sleeper word, to the durable position
// that the process has seen. If the durable position has changed since then, the process does not wait. wake clears
// the sleeper word only if the durable position is higher than the word. Then each process that has raised the word to
// this value, or has found this value in it, was woken or will not wait. But a process that has seen the current
// durable position may be about to wait: its word stays, and the next call of wake wakes the process. If a process was
// killed while it waited, its word is cleared in the same way.
func (l *FileLog) wake() {
	if !l.shared.Sleeps() {
		return
	}
	at := l.shared.Sleeper()
	if at == 0 {
		return
	}
	if at < l.shared.Durable() {
		l.shared.ClearSleeper(at)
	}
	l.shared.WakeDurable()
}

// closeSentry ends the goroutine that waits on the shared page. Call it before the page is unmapped.
func (l *FileLog) closeSentry() {
	s := &l.sentry
	s.mu.Lock()
	s.closed = true
	sleeping := s.moved
	s.mu.Unlock()
	if sleeping == nil {
		return
	}
	t := time.NewTicker(time.Millisecond) // the goroutine may be about to fall asleep
	defer t.Stop()
	for l.shared.WakeDurable(); ; l.shared.WakeDurable() {
		select {
		case <-sleeping:
			s.done.Wait()
			return
		case <-t.C:
		}
	}
}
