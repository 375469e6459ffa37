package diskspace

import (
	"math"
	"strings"
	"testing"
)

// TestFewInodes verifies that inodes are few if fewer are free than the changes in the log and one round need.
func TestFewInodes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		free, all, unfiled int64
		short              bool
	}{
		{1000, 768_544, 0, false}, {255, 768_544, 0, true}, {1000, 768_544, 700, false}, {1000, 768_544, 745, true},
		{10, 100, 0, false}, {4, 100, 0, true}, {10, 100, 6, true}, {0, 0, 1000, false},
	} {
		s := Space{Free: 1 << 40, Total: 1 << 41, Low: 1 << 27, Inodes: c.free, AllInodes: c.all, Unfiled: c.unfiled}
		if s.Short() != c.short {
			t.Errorf("%d of %d inodes, %d files missing: short %v", c.free, c.all, c.unfiled, !c.short)
		}
		if said := s.Say("/s"); c.short && c.unfiled > 0 && !strings.Contains(said, "has changes for") {
			t.Errorf("it says only: %s", said)
		}
	}
}

// TestFit verifies that the number of memories that fit is bounded by bytes or by inodes, whichever allow fewer.
func TestFit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		s               Space
		memories, bytes int64
		least, most     int64
	}{
		{"an empty store", Space{Total: 1 << 41, Free: 6_000_000 + 1<<27, Low: 1 << 27}, 0, 0, 1000, 1050},
		{"large memories", Space{Total: 1 << 41, Free: 6_000_000 + 1<<27, Low: 1 << 27}, 10, 100_000, 300, 320},
		{"numbers beyond all bounds", Space{Total: 1 << 41, Free: 1 << 40}, 1, math.MaxInt64, 10_000, 10_300},
		{"numbers below zero", Space{Total: 1 << 41, Free: 5297 * 1000}, 1, math.MinInt64, 1000, 1001},
		{"a full disk", Space{Total: 1 << 41, Free: 100, Low: 1 << 27}, 0, 0, 0, 0},
		{"inodes", Space{Total: 1 << 41, Free: 1 << 40, Low: 1 << 27, Inodes: 10_256, AllInodes: 768_544}, 0, 0,
			10_000, 10_000},
		{"inodes for the log", Space{Total: 1 << 41, Free: 1 << 40, Low: 1 << 27, Inodes: 10_256, AllInodes: 768_544,
			Unfiled: 4000}, 0, 0, 6000, 6000},
		{"no inode", Space{Total: 1 << 41, Free: 1 << 40, AllInodes: 768_544}, 0, 0, 0, 0},
		{"unknown", Space{}, 0, 0, 0, 0},
	} {
		if c.s.Fit(c.memories, c.bytes); c.s.Fits < c.least || c.s.Fits > c.most {
			t.Errorf("%s: %d memories fit, not %d to %d", c.name, c.s.Fits, c.least, c.most)
		}
	}
}
