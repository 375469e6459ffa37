package retention

import (
	"testing"
	"time"
)

// TestUnused: a reading of the clock that no other one has confirmed does not select sessions.
func TestUnused(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		what            string
		i               idleness
		last            time.Duration // before now
		unused, doubted bool
	}{
		{"confirmed", idleness{wall: now, now: now}, 31 * day, true, false},
		{"used later", idleness{wall: now, now: now}, 29 * day, false, false},
		{"the clock was set ahead", idleness{wall: now.Add(365 * day), now: now}, 29 * day, true, true},
		{"set ahead, and unused for long", idleness{wall: now.Add(365 * day), now: now}, 31 * day, true, false},
		{"first read a minute ago", idleness{wall: now, now: now, doubted: now.Add(-time.Minute),
			newest: now.Add(-31 * day)}, 31 * day, true, true},
		{"the same, unused since another was used", idleness{wall: now, now: now, doubted: now.Add(-time.Minute),
			newest: now.Add(-31 * day)}, 62 * day, true, false},
		{"the same, used since", idleness{wall: now, now: now, doubted: now.Add(-40 * day)}, 31 * day, true, false},
	} {
		s := Session{Last: now.Add(-c.last)}
		if unused, doubted := c.i.unused(&s, 30*day); unused != c.unused || doubted != c.doubted {
			t.Errorf("%s: %v, %v", c.what, unused, doubted)
		}
	}
}
