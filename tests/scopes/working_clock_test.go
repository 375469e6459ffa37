package scopes

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/working"
)

// machine is a clock that can be set, and an uptime that cannot.
type machine struct {
	mu   sync.Mutex
	wall time.Time
	up   time.Duration
}

func (m *machine) pass(d time.Duration) {
	m.set(d)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.up += d
}

// set moves the wall clock, and returns its time.
func (m *machine) set(d time.Duration) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wall = m.wall.Add(d)
	return m.wall
}

func (m *machine) uptime() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.up
}

// reboot restarts the machine: nothing that its processes shared is left.
func (m *machine) reboot(t *testing.T, dir string, off time.Duration) {
	t.Helper()
	m.set(off)
	m.up = time.Second // no process has the store open
	if err := os.Remove(filepath.Join(dir, "wal", "shared")); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) open(t *testing.T, dir string, readOnly bool) (*varve.Store, *working.Memory) {
	t.Helper()
	o := &varve.Options{NoBackground: true, ReadOnly: readOnly}
	o.Clock = func() time.Time { return m.set(time.Microsecond) }
	storetest.Of(o).System = vfs.System{Uptime: m.uptime}
	st, err := varve.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	w, err := st.Working().Open(t.Context(), working.Scope{Session: "s"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return st, w
}

func set(t *testing.T, w *working.Memory, key string, ttl time.Duration) {
	t.Helper()
	if err := w.Set(t.Context(), key, key, working.Expires(ttl)); err != nil {
		t.Fatal(err)
	}
}

func wantLeft(t *testing.T, when string, w *working.Memory, key string, want time.Duration) {
	t.Helper()
	left, found, err := w.TTL(t.Context(), key)
	if err != nil || found != (want > 0) {
		t.Errorf("%s: %s: found %v, %v", when, key, found, err)
	}
	if d := left - want; want > 0 && (d < -time.Second || d > time.Second) {
		t.Errorf("%s: %s has %v left, want %v", when, key, left, want)
	}
}

func inFile(t *testing.T, dir, what string) bool {
	t.Helper()
	names, _ := filepath.Glob(filepath.Join(dir, "working", "*.json"))
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), `"`+what+`": {`) {
			return true
		}
	}
	return false
}

// A wall clock that jumps changes no lifetime, whichever process opens the store then: all processes,
// one after the other and at once, use the machine's uptime.
func TestWorkingClockJumps(t *testing.T) {
	t.Parallel()
	for _, jump := range []time.Duration{10 * time.Hour, -10 * time.Hour} {
		dir := t.TempDir()
		m := &machine{wall: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), up: time.Hour}
		a, w := m.open(t, dir, false)
		m.pass(engine.ClockGrace) // a clock that is set back earlier is trusted
		set(t, w, "k", 2*time.Hour)
		m.pass(5 * time.Minute)
		m.set(jump)
		b, v := m.open(t, dir, false)
		wantLeft(t, "opened after the jump", v, "k", 115*time.Minute)
		set(t, v, "other", 2*time.Hour)
		if err := errors.Join(b.Flush(t.Context()), a.Close(), b.Close()); err != nil {
			t.Fatal(err)
		}
		m.pass(5 * time.Minute)
		b, v = m.open(t, dir, true)
		wantLeft(t, "read-only", v, "k", 110*time.Minute)
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		a, w = m.open(t, dir, false) // no process had it open: the log was recovered
		wantLeft(t, "opened alone", w, "k", 110*time.Minute)
		wantLeft(t, "opened alone", w, "other", 115*time.Minute)
		m.set(-jump)
		m.pass(112 * time.Minute)
		wantLeft(t, "over", w, "k", 0)
		wantLeft(t, "over", w, "other", 3*time.Minute)
		set(t, w, "third", time.Hour)
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		if inFile(t, dir, "k") || !inFile(t, dir, "other") {
			t.Error("what is over was not freed, or what is not was")
		}
	}
}

// A machine that starts with a clock that is ahead hides items that look expired, but frees nothing for
// an hour: if the clock is set back within that hour, the items are visible again.
func TestWorkingClockAheadAtBoot(t *testing.T) {
	t.Parallel()
	for _, back := range []bool{true, false} {
		dir := t.TempDir()
		m := &machine{wall: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), up: time.Hour}
		st, w := m.open(t, dir, false)
		set(t, w, "k", 2*time.Hour)
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		m.reboot(t, dir, 10*time.Hour)
		st, w = m.open(t, dir, false)
		wantLeft(t, "ahead", w, "k", 0)
		for i := range 20 {
			m.pass(time.Minute)
			set(t, w, "new", time.Duration(i+100)*time.Minute)
		}
		wantLeft(t, "ahead", w, "new", 119*time.Minute)
		if err := st.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !inFile(t, dir, "k") {
			t.Error("it was freed within the hour")
		}
		other, v := m.open(t, dir, false) // it has the state from the file
		set(t, v, "new", 2*time.Hour)
		if back {
			m.set(-10 * time.Hour)
			wantLeft(t, "put back", w, "k", 100*time.Minute)
			wantLeft(t, "put back", v, "k", 100*time.Minute)
			m.pass(2 * time.Hour)
		} else {
			m.pass(41 * time.Minute)
		}
		wantLeft(t, "over", w, "k", 0)
		set(t, w, "last", time.Hour)
		if err := errors.Join(st.Close(), other.Close()); err != nil {
			t.Fatal(err)
		}
		if inFile(t, dir, "k") {
			t.Errorf("put back %v: it is still there", back)
		}
	}
}

// A machine whose first reading of the clock in a boot was ahead frees nothing because of it, however
// long no other command is run: a second reading must confirm it.
func TestWorkingClockAheadOnce(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{time.Minute, 5 * time.Hour} {
		dir := t.TempDir()
		m := &machine{wall: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), up: time.Hour}
		st, w := m.open(t, dir, false)
		set(t, w, "k", 24*time.Hour)
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		m.reboot(t, dir, 10*365*24*time.Hour)
		st, w = m.open(t, dir, false)
		set(t, w, "new", 24*time.Hour)
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		m.set(-10 * 365 * 24 * time.Hour)
		m.pass(wait)
		st, w = m.open(t, dir, false)
		set(t, w, "last", time.Hour)
		if _, found, err := w.TTL(t.Context(), "k"); err != nil || !found {
			t.Errorf("%v later: found %v, %v", wait, found, err)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		if !inFile(t, dir, "k") {
			t.Errorf("%v later: it was freed", wait)
		}
	}
}

// A store with the machine's clock uses the machine's own uptime.
func TestWorkingUptime(t *testing.T) {
	t.Parallel()
	up := vfs.Uptime()
	if up == nil {
		t.Skip("no uptime that all processes share on this system")
	}
	if a := up(); a <= 0 || up() < a {
		t.Error(a)
	}
	st, err := varve.Open(context.Background(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	w, err := st.Working().Open(t.Context(), working.Scope{Session: "s"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	set(t, w, "k", time.Hour)
	wantLeft(t, "now", w, "k", time.Hour)
	if a := storetest.Inner(st).Engine.Log().Clock().Anchor(); a.At == 0 {
		t.Error("the store's time was not tied to it")
	}
	if tick, _ := storetest.Inner(st).Scopes.Tick(); time.Since(time.UnixMilli(tick)).Abs() > time.Minute {
		t.Error(tick)
	}
}
