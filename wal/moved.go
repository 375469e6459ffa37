package wal

import (
	"sync"
	"time"
)

// sentry sleeps on the shared page for all of this process who wait until durable
// moves.
type sentry struct {
	mu     sync.Mutex
	moved  chan struct{} // closed when it has; nil while nobody waits
	closed bool
	done   sync.WaitGroup
}

// sentryMost is how long one sleeps at most: the process that moved durable may have been killed
// before it woke the others.
const sentryMost = time.Second

// Moved returns a channel that is closed when durable has moved since, whichever process moved it,
// when the log is closed, and in any case after a second. It is nil if the caller has to poll: on
// systems without support, and for a read-only process, which cannot register as waiting. Between
// two calls nothing is watched: read Durable after the call, not before.
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

// wake tells all processes that durable has moved.
//
// A process about to sleep has raised the word to where it saw durable, and does not fall asleep if
// that is another one by then. So the word is taken back only where durable has passed it: all who
// raised it as far, or found it as far, were woken or will not sleep. One who saw durable where it
// is now may be about to: he is left to the next. One that was killed in its sleep is forgotten
// with the others.
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

// closeSentry wakes who sleeps and waits for him, before the page is unmapped.
func (l *FileLog) closeSentry() {
	s := &l.sentry
	s.mu.Lock()
	s.closed = true
	sleeping := s.moved
	s.mu.Unlock()
	if sleeping == nil {
		return
	}
	t := time.NewTicker(time.Millisecond) // it may be about to fall asleep
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
