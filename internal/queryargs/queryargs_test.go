package queryargs

import (
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
)

// TestByTime verifies that each filter by time compares the time that its name says, and includes or excludes the given
// day.
func TestByTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 15, 0, 0, 0, time.Local)
	st, err := varve.Open(t.Context(), t.TempDir(), &varve.Options{NoBackground: true, Clock: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := st.Put(t.Context(), varve.Memory{ID: "a", Content: "x", Timestamp: now.AddDate(0, 0, -10)}); err != nil { // on the 16th
		t.Fatal(err)
	}
	for given, want := range map[string]int64{
		"since=2026-11-16": 1, "since=2026-11-17": 0, "after=2026-11-15": 1, "after=2026-11-16": 0, "until=2026-11-16": 1, "until=2026-11-15": 0, "before=2026-11-17": 1, "before=2026-11-16": 0,
		"created-since=2026-11-26": 1, "created-since=2026-11-27": 0, "created-until=2026-11-26": 1, "created-until=2026-11-25": 0,
		"updated-since=2026-11-26": 1, "updated-since=2026-11-27": 0, "updated-until=2026-11-26": 1, "updated-until=2026-11-25": 0,
		"since=2026-11-16 until=2026-11-16 created-since=today": 1, "since=2026-11-01 after=2026-11-15 before=2026-11-30 until=2026-11-16": 1, "until=2026-11-30 before=2026-11-10": 0,
		"until=2026-11-15 created-since=2026-11-20": 0, "": 1,
	} {
		values := map[string]string{}
		for _, s := range strings.Fields(given) {
			name, value, _ := strings.Cut(s, "=")
			values[name] = value
		}
		filters, err := ByTime(now, func(name string) (string, bool) { v, ok := values[name]; return v, ok }, func(name string) string { return name })
		if err != nil || len(filters) != len(values) {
			t.Errorf("%s: %v", given, err)
			continue
		}
		if n, err := st.Count(t.Context(), filters...); n != want || err != nil {
			t.Errorf("%s: %d, %v, want %d", given, n, err, want)
		}
	}
}
