package wal

import (
	"sync"
	"time"
)

// sentry is the goroutine that sleeps on the shared page until the durable position moves, on behalf of all
// goroutines of this process that wait for that.
type sentry struct {
	mu     sync.Mutex
	moved  chan struct{} // closed when durable has moved; nil while no goroutine waits
	closed bool
	done   sync.WaitGroup
}

// sentryMost is the maximum duration of one sleep: the process that moved the durable position may have been
// killed before it woke the others.
const sentryMost = time.Second

// Moved returns a channel that is closed when the durable position has moved since the call, whichever process
// moved it. The channel is also closed when the log is closed, and in any case after a second. Moved returns
// nil if the caller has to poll: on systems without support, and in a read-only process, which cannot register
// as waiting. Nothing is watched between two calls, so read Durable after calling Moved, not before.
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

// wake wakes the processes of the machine that sleep until the durable position moves, after it has moved.
//
// A process that is about to sleep raises the sleeper word of the shared page to the durable position that it
// saw. It does not fall asleep if the durable position has moved since. wake clears the word only if the
// durable position has passed the word's value: then all processes that raised the word so far, or found that
// value in it, were woken or will not sleep. A process that saw the current durable position may be about to
// sleep; the next call of wake wakes it. The word of a process that was killed in its sleep is cleared in the
// same way.
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

// closeSentry wakes the goroutine that sleeps on the shared page and waits until it has ended, before the page
// is unmapped.
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
