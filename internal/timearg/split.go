package timearg

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// MostDays is the maximum number of days that a span of time may have, and that a time may be in the past: 273 years.
// A time.Duration is limited to 292 years.
const MostDays = 100_000

var (
	errLong  = fmt.Errorf("more than %d days", MostDays)
	errUnits = errors.New("write numbers with units: s, m, h, d or w, for example 90m or 1w2d")
)

// Split parses a span of time such as 1w2d3h: weeks and days, each at most once and in this order, then a duration as
// time.ParseDuration accepts it. days is the number of days in the weeks and days, and rest is the duration.
func Split(s string) (days int, rest time.Duration, err error) {
	for _, unit := range []struct {
		name string
		days int
	}{{"w", 7}, {"d", 1}} {
		number, after, ok := strings.Cut(s, unit.name)
		if !ok {
			continue
		}
		if !digits(number) {
			return 0, 0, fmt.Errorf("a whole number goes before %s, and larger units before smaller ones", unit.name)
		}
		n, err := strconv.Atoi(number)
		if err != nil || n > MostDays/unit.days-days {
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
		return 0, 0, errors.New("must not have a sign")
	}
	rest, err = time.ParseDuration(s)
	switch {
	case err == nil && rest > time.Duration(MostDays-days)*24*time.Hour:
		return 0, 0, errLong
	case err != nil && strings.Trim(s, "0123456789.") == "":
		return 0, 0, errors.New("the unit is missing: s, m, h, d or w")
	case err != nil:
		return 0, 0, errUnits
	}
	return days, rest, nil
}
