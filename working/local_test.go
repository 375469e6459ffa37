package working_test

import (
	"sync"
	"testing"
	"time"

	"github.com/varve-db/varve/working"
	"github.com/varve-db/varve/working/workingtest"
)

// testClock is a wall clock that can jump, with a monotonic clock that cannot.
type testClock struct {
	mu   sync.Mutex
	wall time.Time
	mono time.Duration
}

func (c *testClock) Wall() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wall
}

func (c *testClock) Mono() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mono
}

func (c *testClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall, c.mono = c.wall.Add(d), c.mono+d
}

func (c *testClock) jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall = c.wall.Add(d)
}

func newTestClock() *testClock {
	return &testClock{wall: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
}

func TestConformance(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		workingtest.Run(t, func(t *testing.T) *workingtest.Fixture {
			c := newTestClock()
			h := working.NewLocal(c)
			t.Cleanup(func() { h.Close() })
			return &workingtest.Fixture{Home: h, Advance: c.advance, Jump: c.jump}
		})
	})
}
