package redis_test

import (
	"errors"
	"testing"
	"time"

	"github.com/varve-db/varve/working"
	"github.com/varve-db/varve/working/redis"
)

// next waits for an event.
func next(t *testing.T, events chan redis.Event, want redis.EventKind) redis.Event {
	t.Helper()
	select {
	case e := <-events:
		if e.Kind != want {
			t.Fatalf("event %q, want %q", e.Kind, want)
		}
		return e
	case <-time.After(30 * time.Second):
		t.Fatalf("no event %q", want)
	}
	return redis.Event{}
}

// F59: a fallback is visible and reported, ends by itself, and data written meanwhile are reported and
// not merged.
func TestF59Fallback(t *testing.T) {
	s := start(t, "--appendonly", "yes", "--appendfsync", "always")
	events := make(chan redis.Event, 10)
	h := open(t, redis.Options{URL: s.url(), Fallback: true, RetryAfter: 5 * time.Millisecond, OnEvent: func(e redis.Event) { events <- e }})
	m := attach(t, h)
	ok(t, m.Set(t.Context(), "k", "in redis"))
	for round := range 2 {
		s.kill()
		ok(t, m.Set(t.Context(), "meanwhile", round))
		if e := next(t, events, redis.FallbackBegan); !errors.Is(e.Err, working.ErrUnavailable) || e.Time.IsZero() {
			t.Errorf("%+v", e)
		}
		if !m.UsingFallback() || !h.UsingFallback() {
			t.Error("the fallback is not seen")
		}
		lacks(t, m, "k") // data in Redis are not visible
		has(t, m, "meanwhile", float64(round))
		_, err := m.Append(t.Context(), "thought")
		ok(t, err)
		_, err = m.SetTask(t.Context(), working.Task{Status: "alone"})
		ok(t, err)
		cp, err := m.Checkpoint(t.Context(), "alone")
		ok(t, err)
		ok(t, m.Set(t.Context(), "late", 1, working.Expires(time.Hour)))
		stats, err := m.Stats(t.Context())
		if err != nil || !stats.Fallback || stats.Home != "redis" || stats.UserKeys != 2 {
			t.Errorf("%+v, %v", stats, err)
		}
		fails(t, m.Check(t.Context()), working.ErrUnavailable)
		n := 0
		for sc, err := range h.Scopes(t.Context()) {
			if n++; err != nil || sc != scope {
				t.Errorf("%v, %v", sc, err)
			}
		}
		if n != 1 {
			t.Errorf("%d scopes", n)
		}
		attach(t, h) // attaching alone is not reported
		other, err := working.Open(t.Context(), h, working.Scope{Session: "only attached"}, nil)
		ok(t, err)
		ok(t, other.Close())

		s.start()
		e := next(t, events, redis.FallbackEnded)
		if m.UsingFallback() {
			t.Error("the fallback goes on")
		}
		if len(e.Written) != 1 || e.Err != nil {
			t.Fatalf("%+v", e)
		}
		w := e.Written[0]
		if w.Scope != scope || w.Err != nil || len(w.State.Values) != 2 || w.State.Values["meanwhile"] != float64(round) || w.State.TTL["late"] <= 0 ||
			w.State.Task.Status != "alone" || len(w.State.Notes) != 1 || len(w.Checkpoints) != 1 || w.Checkpoints[0].Info.ID != cp.ID {
			t.Errorf("%+v", w)
		}
		has(t, m, "k", "in redis")
		lacks(t, m, "meanwhile")
		if texts, err := m.Scratchpad(t.Context()); err != nil || len(texts) != 0 {
			t.Errorf("merged: %v, %v", texts, err)
		}
	}
	if all := h.Meanwhile(); len(all) != 2 {
		t.Errorf("%d reports", len(all))
	}
	if all := h.Meanwhile(); len(all) != 0 {
		t.Errorf("%d reports, a second time", len(all))
	}
}

// Redis may be unreachable from the start; and a fallback that is closed reports too.
func TestFallbackFromTheStart(t *testing.T) {
	s := start(t)
	s.kill()
	events := make(chan redis.Event, 10)
	h := open(t, redis.Options{URL: s.url(), Fallback: true, OnEvent: func(e redis.Event) { events <- e }})
	next(t, events, redis.FallbackBegan)
	m := attach(t, h)
	ok(t, m.Set(t.Context(), "k", 1))
	has(t, m, "k", 1.0)
	ok(t, h.Close())
	if e := next(t, events, redis.FallbackEnded); !errors.Is(e.Err, working.ErrClosed) || len(e.Written) != 1 || e.Written[0].State.Values["k"] != 1.0 {
		t.Errorf("%+v", e)
	}
	fails(t, m.Set(t.Context(), "k", 2), working.ErrClosed)
}
