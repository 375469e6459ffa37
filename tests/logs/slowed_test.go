package logs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/flush"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/working"
)

// machineTime is an uptime that advances while a goroutine sleeps.
type machineTime struct {
	mu    sync.Mutex
	now   time.Duration
	slept time.Duration
}

func (m *machineTime) uptime() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

func (m *machineTime) sleep(ctx context.Context, d time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now += d
	m.slept += d
	return ctx.Err()
}

func (m *machineTime) took() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.slept
	m.slept = 0
	return d
}

// slowRate is the rate, in bytes a second, at which the files of slowFiles are written.
const slowRate = 1 << 20

// slowFiles limits the backlog to a MiB and stops all flushers, in the state after five seconds at
// slowRate.
func slowFiles(t *testing.T, st *varve.Store) *wal.Held {
	t.Helper()
	c := st.Admin().Config()
	c.BacklogBytes = 1 << 20
	fixture.Must(t, st.Admin().SetConfig(c))
	held, err := storetest.Inner(st).Engine.Log().LockFlush(t.Context())
	fixture.Must(t, err)
	fixture.Must(t, storetest.Inner(st).Engine.Log().Pace().Filed(held, 0, 5*slowRate, 5*time.Second))
	return held
}

// While files are written too slowly, writers are slowed down by small delays, as long as their bytes
// take to be written and no longer than one and a half times that, through any process; none flushes in
// its own call, and Health gives the reason.
func TestSlowedWriters(t *testing.T) {
	t.Parallel()
	dir, clock := t.TempDir(), &machineTime{now: time.Hour}
	var mu sync.Mutex
	var events []varve.Event
	options := func() *varve.Options {
		return storetest.In(&varve.Options{Listener: func(e varve.Event) {
			mu.Lock()
			defer mu.Unlock()
			if e.Kind == varve.EventSlowed {
				events = append(events, e)
			}
		}}, storetest.Environment{System: vfs.System{Uptime: clock.uptime, Sleep: clock.sleep}})
	}
	one, two := fixture.Open(t, dir, options()), fixture.Open(t, dir, options())
	held := slowFiles(t, one)
	defer held.Unlock()
	storetest.Inner(two).Engine.Settings().Reread()
	text := storetest.Text(20 << 10)
	n := 0
	put := func(st *varve.Store) (bytes int64) {
		t.Helper()
		n++
		before := one.Admin().Stats().Durable
		if _, err := st.Put(t.Context(), varve.Memory{ID: fmt.Sprint(n), Content: text}); err != nil {
			t.Fatal(err)
		}
		return int64(one.Admin().Stats().Durable - before)
	}
	for one.Admin().Stats().Unflushed < 500<<10 {
		put(one)
	}
	if d := clock.took(); d != 0 {
		t.Fatalf("slowed by %v below half the bound", d)
	}
	if why := one.Health(t.Context()).Slowed; why != "" {
		t.Fatal(why)
	}
	for one.Admin().Stats().Unflushed < 540<<10 {
		put(one)
	}
	clock.took()
	var bytes int64
	began := clock.uptime()
	for range 50 {
		bytes += put(one) + put(two)
	}
	took := clock.uptime() - began
	// The text is compressed in the log, so the estimate of its bytes decides.
	least := time.Duration(float64(100*len(text)) / slowRate * float64(time.Second))
	if took < least*9/10 || took > least*16/10 {
		t.Errorf("100 puts of %d bytes (%d in the log) took %v, at the rate of the files it is %v", len(text), bytes, took,
			least)
	}
	before := clock.uptime()
	if err := storetest.Inner(one).Flusher.Pressure(flush.Unpaced(t.Context()),
		func() int64 { return 1 << 20 }); err != nil || clock.uptime() != before {
		t.Errorf("a flusher waits for itself: %v, %v", clock.uptime()-before, err)
	}
	if h := two.Health(t.Context()); !strings.Contains(h.Slowed, "backlog_bytes") || !h.OK {
		t.Errorf("%q %v", h.Slowed, h.Problems)
	}
	mu.Lock()
	if len(events) != 2 || events[0].Note == "" || events[0].Bytes == 0 { // once for each process
		t.Errorf("%+v", events)
	}
	mu.Unlock()
	held.Unlock()
	if err := one.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	clock.took()
	put(two)
	if d := clock.took(); d != 0 || two.Health(t.Context()).Slowed != "" {
		t.Errorf("slowed by %v after a flush: %s", d, two.Health(t.Context()).Slowed)
	}
}

// A batch that takes seconds to be written to files does not stop all commits for as long, provided that
// there is room.
func TestSlowedBatches(t *testing.T) {
	t.Parallel()
	clock := &machineTime{now: time.Hour}
	st := fixture.Open(t, t.TempDir(), storetest.In(&varve.Options{},
		storetest.Environment{System: vfs.System{Uptime: clock.uptime, Sleep: clock.sleep}}))
	defer slowFiles(t, st).Unlock()
	fill := func(to int64) {
		t.Helper()
		for n := 0; st.Admin().Stats().Unflushed < to; n++ {
			if _, err := st.Put(t.Context(),
				varve.Memory{ID: fmt.Sprint(to, n), Content: strings.Repeat("slow ", 4<<10)}); err != nil {
				t.Fatal(err)
			}
		}
		clock.took()
	}
	waits := func() time.Duration {
		t.Helper()
		for range 2 { // the second waits for the turn of the first
			clock.took()
			if err := storetest.Inner(st).Flusher.Pressure(t.Context(), func() int64 { return 4 * slowRate }); err != nil {
				t.Fatal(err)
			}
		}
		return clock.took()
	}
	fill(600 << 10)
	if d := waits(); d < 300*time.Millisecond || d > 500*time.Millisecond {
		t.Errorf("with room for many it waits %v", d)
	}
	fill(950 << 10)
	if d := waits(); d < 5*time.Second || d > 7*time.Second {
		t.Errorf("at the bound it waits %v, its bytes take four seconds", d)
	}
}

// While no flusher works, the backlog exceeds its bound, and commits wait the longer the more it does, also where the
// rate of the files is not known: they do not continue as if the files followed.
func TestSlowedBeyondBound(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{true, false} {
		clock := &machineTime{now: time.Hour}
		st := fixture.Open(t, t.TempDir(), storetest.In(&varve.Options{},
			storetest.Environment{System: vfs.System{Uptime: clock.uptime, Sleep: clock.sleep}}))
		c := st.Admin().Config()
		c.BacklogBytes = 1 << 20
		fixture.Must(t, st.Admin().SetConfig(c))
		log := storetest.Inner(st).Engine.Log()
		held, err := log.LockFlush(t.Context())
		fixture.Must(t, err)
		defer held.Unlock()
		rate := float64(16 << 20) // assumed
		if known {
			fixture.Must(t, log.Pace().Filed(held, 0, 5*slowRate, 5*time.Second))
			rate = slowRate
		}
		for _, bounds := range []int64{2, 4} {
			for n := 0; log.Pace().Unfiled() < bounds<<20; n++ {
				m := varve.Memory{ID: fmt.Sprint(bounds, n), Content: storetest.Text(60 << 10)}
				_, err := st.Put(t.Context(), m)
				fixture.Must(t, err)
			}
			clock.took()
			const bytes = 1 << 20
			for range 2 { // the second waits for the turn of the first
				clock.took()
				fixture.Must(t, storetest.Inner(st).Flusher.Pressure(t.Context(), func() int64 { return bytes }))
			}
			want := time.Duration(1.5 * float64(bounds) * bytes / rate * float64(time.Second))
			if got := clock.took(); got < want*9/10 || got > want*12/10 {
				t.Errorf("the rate is known: %t; at %d times the bound a commit waits %v, want %v", known, bounds, got,
					want)
			}
		}
	}
}

// A bound that is too small or too large is refused.
func TestBacklogSetting(t *testing.T) {
	t.Parallel()
	st := fixture.Open(t, t.TempDir(), nil)
	for _, n := range []int64{-1, 1, 1<<20 - 1, 1<<30 + 1} {
		c := st.Admin().Config()
		c.BacklogBytes = n
		if err := st.Admin().SetConfig(c); err == nil || !strings.Contains(err.Error(), "backlog_bytes") {
			t.Errorf("%d: %v", n, err)
		}
	}
	if got := st.Admin().Config().Resolved().BacklogBytes; got != 96<<20 {
		t.Error(got)
	}
}

// An operation on working memory that is canceled while it waits for the files was not begun, and is not
// done later.
func TestSlowedScope(t *testing.T) {
	t.Parallel()
	clock := &machineTime{now: time.Hour}
	entered, leave := make(chan struct{}, 100), make(chan struct{})
	var armed atomic.Bool
	sleep := func(ctx context.Context, d time.Duration) error {
		if armed.Load() && d > 10*time.Second {
			entered <- struct{}{}
			select {
			case <-leave:
			case <-ctx.Done():
			}
		}
		return clock.sleep(ctx, d)
	}
	st := fixture.Open(t, t.TempDir(), storetest.In(&varve.Options{},
		storetest.Environment{System: vfs.System{Uptime: clock.uptime, Sleep: sleep}}))
	c := st.Admin().Config()
	c.BacklogBytes = 1 << 20
	if err := st.Admin().SetConfig(c); err != nil {
		t.Fatal(err)
	}
	w, err := st.Working().Open(t.Context(), working.Scope{Session: "s"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Set(t.Context(), "a", 1); err != nil {
		t.Fatal(err)
	}
	held, err := storetest.Inner(st).Engine.Log().LockFlush(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Unlock()
	for i := 0; storetest.Inner(st).Engine.Log().Pace().Unfiled() < 600<<10; i++ {
		if _, err := st.Put(t.Context(),
			varve.Memory{ID: fmt.Sprint(i), Content: strings.Repeat("slow ", 4<<10)}); err != nil {
			t.Fatal(err)
		}
	}
	armed.Store(true)
	storetest.Inner(st).Engine.Log().Pace().Turn(clock.uptime(), 30*time.Second) // as of a batch
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Set(ctx, "a", 2) }()
	<-entered
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || errors.Is(err, varve.ErrOutcomeUnknown) {
		t.Errorf("%v", err)
	}
	armed.Store(false)
	close(leave)
	if err := w.Set(t.Context(), "b", 1); err != nil {
		t.Fatal(err)
	}
	if v, _, err := w.Get(t.Context(), "a"); err != nil || fmt.Sprint(v) != "1" {
		t.Errorf("%v %v", v, err)
	}
}

// If writers wait for the index, Health names the index, and not the files.
func TestSlowedByIndex(t *testing.T) {
	t.Parallel()
	st := fixture.Open(t, t.TempDir(), storetest.In(&varve.Options{NoBackground: true},
		storetest.Environment{System: vfs.System{BacklogBytes: 1 << 20}}))
	for i := 0; st.Admin().Stats().Backlog < 600<<10; i++ {
		if _, err := st.Put(t.Context(),
			varve.Memory{ID: fmt.Sprint(i), Content: strings.Repeat("slow ", 4<<10)}); err != nil {
			t.Fatal(err)
		}
	}
	if h := st.Health(t.Context()); !strings.Contains(h.Slowed, "the index") ||
		strings.Contains(h.Slowed, "backlog_bytes") || !h.OK {
		t.Errorf("%q %v", h.Slowed, h.Problems)
	}
}
