package embedding

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
)

// clock is a clock that the test moves.
type clock struct{ now time.Time }

func newClock() *clock { return &clock{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *clock) read() time.Time { return c.now }

var errTest = errors.New("no service")

// try makes a call that ends with err. passed reports whether the breaker allowed the call, and what is the change of
// the breaker's state.
func try(t *testing.T, b *Breaker, by waiter, err error) (passed bool, what change) {
	t.Helper()
	c, refused := b.enter(by, time.Minute)
	if refused != nil {
		var e *errs.EmbedderError
		if !errors.Is(refused, errs.ErrEmbedderDown) || !errors.As(refused, &e) || e.Failures < breakerFailures || e.Next.IsZero() {
			t.Fatalf("%#v", refused)
		}
		return false, unchanged
	}
	return true, b.leave(c, err, false)
}

func TestBreaker(t *testing.T) {
	t.Parallel()
	c := newClock()
	b := &Breaker{Clock: c.read}
	step := func(name string, by waiter, err error, pass bool, want change, state State) {
		t.Helper()
		passed, what := try(t, b, by, err)
		if h := b.Health(); passed != pass || what != want || h.State != state {
			t.Fatalf("%s: passed %v, changed %v, state %q; want %v, %v, %q", name, passed, what, h.State, pass, want, state)
		}
	}
	if h := b.Health(); h.State != StateUnknown {
		t.Error(h)
	}
	step("works", forWrite, nil, true, unchanged, StateWorks)
	step("first", forWrite, errTest, true, unchanged, StateFailing)
	step("second", forWrite, errTest, true, unchanged, StateFailing)
	step("a success between", forWrite, nil, true, unchanged, StateWorks)
	for range 5 {
		step("the queue has its own back-off", forQueue, errTest, true, unchanged, StateUnknown)
		step("and so has a user", forUser, errTest, true, unchanged, StateUnknown)
	}
	step("first", forWrite, errTest, true, unchanged, StateFailing)
	since := c.now
	c.now = c.now.Add(time.Second)
	step("second", forWrite, errTest, true, unchanged, StateFailing)
	step("third", forWrite, errTest, true, wentDown, StateDown)
	if h := b.Health(); !h.Since.Equal(since) || h.Failures != 3 || !errors.Is(h.Err, errTest) || !h.Next.Equal(c.now.Add(breakerFirst)) {
		t.Errorf("%+v", h)
	}
	step("down", forWrite, nil, false, unchanged, StateDown)
	step("down for the queue", forQueue, nil, false, unchanged, StateDown)
	step("never for a user", forUser, errTest, true, unchanged, StateDown)
	for wait := breakerFirst; ; wait = min(2*wait, breakerLast) {
		if h := b.Health(); !h.Next.Equal(c.now.Add(wait)) {
			t.Fatalf("asked again after %s, want %s", h.Next.Sub(c.now), wait)
		}
		c.now = c.now.Add(wait - time.Nanosecond)
		step("a moment before", forWrite, nil, false, unchanged, StateDown)
		c.now = c.now.Add(time.Nanosecond)
		if wait == breakerLast {
			break
		}
		step("the probe fails", forWrite, errTest, true, unchanged, StateDown)
	}
	probe, err := b.enter(forWrite, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if h := b.Health(); h.State != StateProbing {
		t.Error(h)
	}
	step("one probe at a time", forWrite, nil, false, unchanged, StateProbing)
	step("also of the queue", forQueue, nil, false, unchanged, StateProbing)
	if b.leave(probe, nil, true) != unchanged { // its caller has gone
		t.Error("changed")
	}
	step("the next one is the probe", forQueue, nil, true, cameUp, StateWorks)
	step("works", forWrite, nil, true, unchanged, StateWorks)

	for range breakerFailures {
		try(t, b, forWrite, errTest)
	}
	c.now = c.now.Add(-24 * time.Hour)
	step("the clock was set back", forWrite, nil, true, cameUp, StateWorks)
	for range breakerFailures {
		try(t, b, forWrite, errTest)
	}
	step("a user finds out", forUser, nil, true, cameUp, StateWorks)
}

// TestBreakerKept verifies that processes of one user inform each other, and that the file's content is not trusted.
func TestBreakerKept(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), newClock()
	random := func(b []byte) error { _, err := rand.Read(b); return err }
	process := func(name string) *Breaker {
		return &Breaker{Clock: c.read, Kept: &Kept{FS: vfs.OS(), Dir: filepath.Join(dir, "state"), Name: name, Random: random}}
	}
	for i := range breakerFailures { // each of another process, as commands are
		passed, what := try(t, process("a"), forWrite, fmt.Errorf("failure %d %s", i, strings.Repeat("ü", mostError)))
		if !passed || (what == wentDown) != (i == breakerFailures-1) {
			t.Fatal(i, passed, what)
		}
	}
	if h := process("a").Health(); h.State != StateDown || h.Failures != breakerFailures || len(h.Err.Error()) > mostError+3 {
		t.Errorf("%+v", h)
	}
	if h := process("b").Health(); h.State != StateUnknown {
		t.Errorf("another service: %+v", h)
	}
	one, two := process("a"), process("a")
	if passed, _ := try(t, one, forWrite, nil); passed {
		t.Error("not down")
	}
	c.now = c.now.Add(breakerFirst)
	probe, err := one.enter(forWrite, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if passed, _ := try(t, two, forWrite, nil); passed {
		t.Error("two probes")
	}
	c.now = c.now.Add(time.Minute) // it was killed
	if passed, what := try(t, two, forWrite, errTest); !passed || what != unchanged {
		t.Error(passed, what)
	}
	if h := two.Health(); h.State != StateDown || !h.Next.Equal(c.now.Add(2*breakerFirst)) {
		t.Errorf("%+v", h)
	}
	c.now = c.now.Add(2 * breakerFirst)
	if what := one.leave(probe, nil, false); what != cameUp {
		t.Error(what)
	}
	if passed, _ := try(t, two, forWrite, nil); !passed || two.Health().State != StateWorks {
		t.Error("it was not told that the service works")
	}
	k := process("a").Kept
	if names, err := os.ReadDir(filepath.Dir(k.path())); err != nil || len(names) != 0 {
		t.Error(names, err)
	}
	for _, text := range []string{
		"", "null", "[]", "{", `{"failures":-1}`, `{"failures":9}`, strings.Repeat("x", 2*mostKept),
		`{"failures":9,"last":"2026-01-02T03:04:05Z","next":"2027-01-02T03:04:05Z","wait":900000000000}`,
		`{"failures":9,"last":"2020-01-02T03:04:05Z","next":"2020-01-02T03:04:15Z","wait":5000000000}`,
		`{"failures":9,"last":"2027-01-02T03:04:05Z","next":"2027-01-02T03:04:15Z","wait":5000000000}`,
	} {
		if err := os.WriteFile(k.path(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if passed, _ := try(t, process("a"), forWrite, nil); !passed {
			t.Errorf("%.40q: refused", text)
		}
	}
}
