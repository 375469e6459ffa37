//go:build unix

package redis_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve/working"
	"github.com/varve-db/varve/working/redis"
)

// pause stops the server, and returns when it has stopped, if the system reports that: a signal takes
// its time on a busy machine.
func (s *server) pause(t *testing.T) {
	t.Helper()
	ok(t, s.cmd.Process.Signal(syscall.SIGSTOP))
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
		if err != nil || strings.Contains(string(stat), ") T ") {
			return
		}
	}
	t.Fatal("the server does not stop")
}

// warm makes the pool open several connections.
func warm(t *testing.T, m *working.Memory) {
	t.Helper()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if err := m.Set(t.Context(), "k", 1); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func (s *server) resume(t *testing.T) {
	t.Helper()
	ok(t, s.cmd.Process.Signal(syscall.SIGCONT))
}

// A server that was stopped has received the command: whether it executes it is unknown, and it is not
// sent a second time.
func TestPaused(t *testing.T) {
	s := start(t)
	h := open(t, redis.Options{URL: s.url() + "?read_timeout=100ms"})
	m := attach(t, h)
	_, err := m.Increment(t.Context(), "n", 1)
	ok(t, err)
	warm(t, m)
	s.pause(t)
	_, err = m.Increment(t.Context(), "n", 1)
	fails(t, err, working.ErrOutcomeUnknown)
	_, _, err = m.Get(t.Context(), "n")
	fails(t, err, working.ErrUnavailable)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, _, err = m.Get(ctx, "n")
	if err == nil {
		t.Error("a server that stands still answers")
	}
	s.resume(t)
	v, _, err := m.Get(t.Context(), "n")
	if err != nil || v != 1.0 && v != 2.0 {
		t.Errorf("the command was sent once, but n is %v, %v", v, err)
	}
}

// A write that Redis had received before it was stopped is not repeated in the fallback.
func TestFallbackOutcomeUnknown(t *testing.T) {
	s := start(t)
	events := make(chan redis.Event, 10)
	h := open(t, redis.Options{URL: s.url() + "?read_timeout=100ms", Fallback: true, RetryAfter: 5 * time.Millisecond, OnEvent: func(e redis.Event) { events <- e }})
	m := attach(t, h)
	s.pause(t)
	_, err := m.Increment(t.Context(), "n", 1)
	fails(t, err, working.ErrOutcomeUnknown)
	next(t, events, redis.FallbackBegan)
	lacks(t, m, "n")
	s.resume(t)
	if e := next(t, events, redis.FallbackEnded); len(e.Written) != 0 {
		t.Errorf("%+v", e)
	}
	// Redis may execute it now, or may have seen that the connection is gone.
	if v, found, err := m.Get(t.Context(), "n"); err != nil || found && v != 1.0 {
		t.Errorf("n is %v, %v", v, err)
	}
}

// The client of a cluster would send a command again by itself, on another of its connections, and the
// server would execute both.
func TestPausedCluster(t *testing.T) {
	t.Parallel()
	s := startCluster(t)
	m := attach(t, open(t, redis.Options{URL: s.clusterURL() + "&read_timeout=100ms"}))
	_, err := m.Increment(t.Context(), "n", 1)
	ok(t, err)
	warm(t, m)
	s.pause(t)
	_, err = m.Increment(t.Context(), "n", 1)
	fails(t, err, working.ErrOutcomeUnknown)
	s.resume(t)
	for range 20 { // by then the server has received all that was sent
		ok(t, m.Set(t.Context(), "k", 1))
	}
	v, _, err := m.Get(t.Context(), "n")
	if err != nil || v != 1.0 && v != 2.0 {
		t.Errorf("the command was sent once, but n is %v, %v", v, err)
	}
}
