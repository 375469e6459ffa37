package wal

import (
	"sync"
	"time"
)

// sentry is a goroutine that waits on the shared page until the durable position changes. It does so for all goroutines
// of this process that wait for this.
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
// is also closed when the log is closed, and at the latest after a second. Moved returns nil if the caller must poll
// instead: if the system does not support such waits, and in a read-only process, which cannot register as waiting. No
// change is noticed between two calls, so call Moved first, and Durable after it.
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
// A process that is about to wait raises a word in the shared page, the sleeper word, to the durable position that it
// has seen. If the durable position has changed since then, it does not wait. wake clears the word only if the durable
// position is higher than the word: then each process that has raised the word, or has found this value in it, was
// woken or will not wait. A process that has seen the current durable position may be about to wait; the next call of
// wake wakes it. If a process was killed while it waited, its word is cleared in the same way.
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
