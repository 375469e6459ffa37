package span

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Moment reads a time, or a day (local, from its midnight).
func Moment(s string) (time.Time, bool) {
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

// Time reads the same, or how long ago. A day ago is the same time of the day before.
func Time(s string, now time.Time) (time.Time, error) {
	if t, ok := Moment(s); ok {
		return t, nil
	}
	year, month, day := now.Local().Date()
	switch strings.ToLower(s) {
	case "today":
		return time.Date(year, month, day, 0, 0, 0, 0, time.Local), nil
	case "yesterday":
		return time.Date(year, month, day-1, 0, 0, 0, 0, time.Local), nil
	}
	days, rest, err := split(s)
	switch {
	case err == nil:
		return now.AddDate(0, 0, -days).Add(-rest), nil
	case errors.Is(err, errLong):
		return time.Time{}, fmt.Errorf("%q is too long ago: %w", s, err)
	}
	return time.Time{}, fmt.Errorf("%q is neither a time (2026-01-31T15:04:05Z), nor a day (2026-01-31, today, yesterday), nor how long ago (90m, 24h, 7d, 2w)", s)
}

// Parse reads how long, as people write it: 90m, 1h30m, 7d, 2w3d. A day is 24 hours. It is more
// than 0.
func Parse(s string) (time.Duration, error) {
	d, err := parseAny(s)
	if err == nil && d <= 0 {
		err = errors.New("not more than 0")
	}
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration (90m, 1h30m, 24h, 7d, 2w3d): %w", s, err)
	}
	return d, nil
}

// parseAny may be 0.
func parseAny(s string) (time.Duration, error) {
	days, rest, err := split(s)
	if err != nil {
		return 0, err
	}
	return time.Duration(days)*day + rest, nil
}

const (
	day      = 24 * time.Hour
	mostDays = 100_000 // 273 years; a Duration has 292
)

var errLong = fmt.Errorf("more than %d days", mostDays)

// split reads weeks and days, then what Go's durations have (hours and less), each unit at most
// once, the larger first.
func split(s string) (days int, rest time.Duration, err error) {
	for _, unit := range []struct {
		name string
		days int
	}{{"w", 7}, {"d", 1}} {
		number, after, ok := strings.Cut(s, unit.name)
		if !ok {
			continue
		}
		if number == "" || strings.Trim(number, "0123456789") != "" {
			return 0, 0, fmt.Errorf("a whole number goes before %s, and larger units before smaller ones", unit.name)
		}
		n, err := strconv.Atoi(number)
		if err != nil || n > mostDays/unit.days-days {
			return 0, 0, errLong
		}
		days += n * unit.days
		if s = after; s == "" {
			return days, 0, nil
		}
	}
	switch {
	case s == "":
		return 0, 0, errors.New("empty")
	case s[0] == '-' || s[0] == '+':
		return 0, 0, errors.New("with a sign")
	}
	rest, err = time.ParseDuration(s)
	switch {
	case err == nil && rest > time.Duration(mostDays-days)*day:
		return 0, 0, errLong
	case err != nil && strings.Trim(s, "0123456789.") == "":
		return 0, 0, errors.New("the unit is missing: s, m, h, d or w")
	case err != nil:
		return 0, 0, errors.New("units are s, m, h, d and w, each with a number before it")
	}
	return days, rest, nil
}

// Text writes a duration as Parse reads it: 30d, 1h30m, 0s.
func Text(d time.Duration) string {
	if d < 0 {
		return "-" + Text(-d)
	}
	s := ""
	for _, unit := range []struct {
		name string
		of   time.Duration
	}{{"d", day}, {"h", time.Hour}, {"m", time.Minute}} {
		if n := d / unit.of; n > 0 {
			s += fmt.Sprintf("%d%s", n, unit.name)
			d -= n * unit.of
		}
	}
	if d > 0 || s == "" {
		s += d.String()
	}
	return s
}

// Seconds is Text for a number of seconds, also for one that no Duration has.
func Seconds(n int64) string {
	if n < 0 || n > mostDays*int64(day/time.Second) {
		return fmt.Sprintf("%ds", n)
	}
	return Text(time.Duration(n) * time.Second)
}

// Age is a duration in its largest unit, for a narrow column: 45s, 12m, 3h, 6d, 9w, 2y.
func Age(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 2*day:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d < 21*day:
		return fmt.Sprintf("%dd", d/day)
	case d < 2*365*day:
		return fmt.Sprintf("%dw", d/(7*day))
	}
	return fmt.Sprintf("%dy", d/(365*day))
}

// Flag is a flag whose value is a duration, 0 and less too: the command decides what it takes.
func Flag(d *time.Duration) *flagValue { return (*flagValue)(d) }

type flagValue time.Duration

func (f *flagValue) String() string { return Text(time.Duration(*f)) }
func (f *flagValue) Type() string   { return "duration" }

func (f *flagValue) Set(s string) error {
	rest, negative := strings.CutPrefix(s, "-")
	d, err := parseAny(rest)
	if err != nil {
		return fmt.Errorf("%q is not a duration (90m, 1h30m, 24h, 7d, 2w3d): %w", s, err)
	}
	if negative {
		d = -d
	}
	*f = flagValue(d)
	return nil
}
