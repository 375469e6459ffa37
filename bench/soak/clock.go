package main

import (
	"fmt"
	"os"
	"time"
)

// clock notices when the machine's clock is set: a commit is counted in the second in which it was done, by that
// clock, for each process has its own monotonic one. Seconds that the clock has passed over have no commits
// and are no seconds.
type clock struct{ last time.Time }

// setLeast is what counts as setting it.
const setLeast = 200 * time.Millisecond

// look is called about once a second.
func (c *clock) look(s *soak, now time.Time) {
	ahead := now.Round(0).Sub(c.last.Round(0)) - now.Sub(c.last)
	last := c.last
	c.last = now
	if ahead.Abs() < setLeast {
		return
	}
	fmt.Fprintf(os.Stderr, "after %v the clock was set ahead by %v\n", now.Sub(s.began).Round(time.Second), ahead.Round(time.Millisecond))
	s.uncounted(last.Sub(s.began))
}
