package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseMoment reads a time, or a day (local, from its midnight).
func ParseMoment(s string) (time.Time, bool) {
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t, true
	}
	for _, layout := range []string{time.DateOnly, time.DateTime, "2006-01-02T15:04:05", "2006-01-02 15:04"} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// ParseTime reads the same, or how long ago.
func ParseTime(s string, now time.Time) (time.Time, error) {
	if t, ok := ParseMoment(s); ok {
		return t, nil
	}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n < 100_000 {
			return now.AddDate(0, 0, -n), nil
		}
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, fmt.Errorf("%q is neither a time (2026-01-31T15:04:05Z), nor a day (2026-01-31), nor how long ago (24h, 7d)", s)
}

// ParseSpan reads how long: 90m, 24h, 30d.
func ParseSpan(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n > 0 && n < 100_000 {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	if d, err := time.ParseDuration(s); err == nil && d > 0 {
		return d, nil
	}
	return 0, fmt.Errorf("%q is not a duration (90m, 24h, 30d)", s)
}
