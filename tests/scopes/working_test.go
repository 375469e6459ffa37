package scopes

import (
	"sync"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/working"
	"github.com/varve-db/varve/working/workingtest"
)

// workClock is a wall clock that can jump, with a monotonic clock that cannot.
type workClock struct {
	mu   sync.Mutex
	wall time.Time
	mono time.Duration
}

func (c *workClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall = c.wall.Add(time.Microsecond)
	return c.wall
}

func (c *workClock) passed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mono
}

func (c *workClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall, c.mono = c.wall.Add(d), c.mono+d
}

func (c *workClock) jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall = c.wall.Add(d)
}

func openWorkStore(t testing.TB, dir string, c *workClock) *varve.Store {
	t.Helper()
	o := &varve.Options{}
	if c != nil {
		// Each process has its own fixed moment; here they share one.
		started := c.passed()
		o.Clock, storetest.Of(o).System.Mono = c.now, func() time.Duration { return c.passed() - started }
	}
	st, err := varve.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

func TestConformance(t *testing.T) {
	t.Parallel()
	t.Run("store", func(t *testing.T) {
		workingtest.Run(t, func(t *testing.T) *workingtest.Fixture {
			c := &workClock{wall: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
			dir := t.TempDir()
			st := openWorkStore(t, dir, c)
			return &workingtest.Fixture{
				Home:    st.Working().Home(),
				Again:   func(t *testing.T) working.Home { return openWorkStore(t, dir, c).Working().Home() },
				Advance: c.advance, Jump: c.jump,
			}
		})
	})
}

// BenchmarkWorking measures working memory in a store: each set is durable. Compare BenchmarkMemory in
// working/ and BenchmarkRedis in working/redis.
func BenchmarkWorking(b *testing.B) {
	st, err := varve.Open(b.Context(), b.TempDir(), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	workingtest.Bench(b, st.Working().Home())
}
