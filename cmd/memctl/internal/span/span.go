package span

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/varve-db/varve/internal/timearg"
)

// Parse parses a duration above 0 as people write it: 90m, 1h30m, 7d, 2w3d. A day is 24 hours.
func Parse(s string) (time.Duration, error) {
	d, err := parseAny(s)
	if err == nil && d <= 0 {
		err = errors.New("must be more than 0")
	}
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration (90m, 1h30m, 24h, 7d, 2w3d): %w", s, err)
	}
	return d, nil
}

// parseAny is like Parse, for any duration, including 0.
func parseAny(s string) (time.Duration, error) {
	days, rest, err := timearg.Split(s)
	if err != nil {
		return 0, err
	}
	return time.Duration(days)*day + rest, nil
}

const day = 24 * time.Hour

// Text formats a duration as Parse parses it: 30d, 1h30m, 0s.
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

// Seconds is like Text, for a number of seconds, which may exceed the range of a Duration.
func Seconds(n int64) string {
	if n < 0 || n > timearg.MostDays*int64(day/time.Second) {
		return fmt.Sprintf("%ds", n)
	}
	return Text(time.Duration(n) * time.Second)
}

// Age formats a duration in its largest unit, for a narrow column: 45s, 12m, 3h, 6d, 9w, 2y.
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

// Flag returns a flag value that stores a parsed duration in *d. The duration may be 0 or negative: the command must
// check its range.
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
