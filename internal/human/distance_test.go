package human

import "testing"

// TestDistance verifies the number of changes that turn one name into another, in both directions.
func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"ttl", "ttl", 0}, {"", "ttl", 3}, {"tll", "ttl", 1}, {"tl", "ttl", 1}, {"content", "contnet", 2},
		{"kitten", "sitting", 3}, {"abc", "xyz", 3}, {"ä", "a", 2},
	} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
		if got := Distance(c.b, c.a); got != c.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", c.b, c.a, got, c.want)
		}
	}
}
