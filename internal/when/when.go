package when

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/varve-db/varve/internal/human"
)

// Span is what a text names: a moment, whose From and To are equal, or a period from From until before To.
type Span struct{ From, To time.Time }

// After is the first moment that is not in it.
func (s Span) After() time.Time {
	if s.To.After(s.From) {
		return s.To
	}
	return s.From.Add(1)
}

// Forms tells people what Parse reads.
const Forms = "write a day (2026-11-22, 22 Nov 2026, yesterday, last friday), a month or a year (2026-11, last month, 2026), " +
	"a moment (2026-11-22T10:00, with a zone 2026-11-22T10:00:00Z), or how long ago (7d, 36h, 3 days ago)"

// Parse reads a time, in the zone of now where it has none.
func Parse(s string, now time.Time) (Span, error) {
	text := strings.Join(strings.Fields(s), " ")
	if t, ok := Moment(text, now.Location()); ok {
		return Span{t, t}, nil
	}
	if text = strings.ToLower(text); text == "now" {
		return Span{now, now}, nil
	}
	if days := strings.Split(text, "/"); len(days) == 3 && len(days[2]) == 4 {
		return Span{}, slashed(s, days)
	}
	for _, read := range []func(string, time.Time) (Span, bool){day, period, clocked} {
		if at, ok := read(text, now); ok {
			return at, nil
		}
	}
	t, err := ago(text, now)
	switch {
	case err == nil:
		return Span{t, t}, nil
	case errors.Is(err, errLong):
		return Span{}, fmt.Errorf("%s is too long ago: %w", human.Quote(s), err)
	}
	return Span{}, fmt.Errorf("%s is not a time: %s", human.Quote(s), Forms)
}

// Moment reads a date with a time of day, or seconds since 1970.
func Moment(s string, zone *time.Location) (time.Time, bool) {
	for _, at := range []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04"} {
		for _, z := range []string{"", "Z07:00", "Z0700", " Z07:00", " -0700"} {
			if t, err := time.ParseInLocation(at+z, s, zone); err == nil {
				return t, true
			}
		}
	}
	number, at := strings.CutPrefix(s, "@")
	if at || len(s) == len("1795341600") {
		if n, err := strconv.ParseInt(number, 10, 64); err == nil && digits(number) && n < 1<<37 {
			return time.Unix(n, 0).In(zone), true
		}
	}
	return time.Time{}, false
}

// dayOf is the day that begins at a time of which only the date counts.
func dayOf(t time.Time, zone *time.Location) Span {
	y, m, d := t.Date()
	return Span{time.Date(y, m, d, 0, 0, 0, 0, zone), time.Date(y, m, d+1, 0, 0, 0, 0, zone)}
}

var weekdays = []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}

// day reads one.
func day(s string, now time.Time) (Span, bool) {
	plain := strings.ReplaceAll(s, ",", "")
	for _, layout := range []string{time.DateOnly, "20060102", "2006/01/02", "2.1.2006", "2 Jan 2006", "2 January 2006", "Jan 2 2006", "January 2 2006", "Mon 2 Jan 2006", "Monday 2 January 2006"} {
		if t, err := time.Parse(layout, plain); err == nil {
			return dayOf(t, now.Location()), true
		}
	}
	if at := slices.Index([]string{"yesterday", "today", "tomorrow"}, s); at >= 0 {
		return dayOf(now.AddDate(0, 0, at-1), now.Location()), true
	}
	name, last := strings.CutPrefix(s, "last ")
	name = strings.TrimPrefix(name, "on ")
	if d := slices.IndexFunc(weekdays, func(w string) bool { return name == w || name == w[:3] }); d >= 0 {
		back := (int(now.Weekday()) - d + 7) % 7
		if last && back == 0 {
			back = 7
		}
		return dayOf(now.AddDate(0, 0, -back), now.Location()), true
	}
	for _, layout := range []string{"2 Jan 2006", "2 January 2006", "Jan 2 2006", "January 2 2006"} {
		for year := now.Year(); year > now.Year()-9; year-- { // 9: until a leap year, also around 1900
			t, err := time.ParseInLocation(layout, plain+" "+strconv.Itoa(year), now.Location())
			if err == nil && !t.After(now) {
				return dayOf(t, now.Location()), true
			}
		}
	}
	return Span{}, false
}

// period reads a month, a year, or a week.
func period(s string, now time.Time) (Span, bool) {
	for _, layout := range []string{"2006-01", "Jan 2006", "January 2006"} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return Span{t, t.AddDate(0, 1, 0)}, true
		}
	}
	if t, err := time.ParseInLocation("2006", s, now.Location()); err == nil && t.Year() >= 1000 {
		return Span{t, t.AddDate(1, 0, 0)}, true
	}
	which, unit, _ := strings.Cut(s, " ")
	n := slices.Index([]string{"last", "this", "next"}, which) - 1
	if n < -1 {
		return Span{}, false
	}
	from := func(months, days int) time.Time {
		y, m, d := now.Date()
		switch unit {
		case "month":
			d = 1
		case "year":
			m, d = 1, 1
		case "week":
			d -= (int(now.Weekday()) + 6) % 7
		}
		return time.Date(y, m+time.Month(months), d+days, 0, 0, 0, 0, now.Location())
	}
	switch unit {
	case "week":
		return Span{from(0, 7*n), from(0, 7*(n+1))}, true
	case "month":
		return Span{from(n, 0), from(n+1, 0)}, true
	case "year":
		return Span{from(12*n, 0), from(12*(n+1), 0)}, true
	}
	return Span{}, false
}

// clocked reads a day with a time of it behind it.
func clocked(s string, now time.Time) (Span, bool) {
	at := strings.LastIndexByte(s, ' ')
	if at < 0 {
		return Span{}, false
	}
	d, ok := day(strings.TrimSuffix(s[:at], " at"), now)
	if !ok {
		return Span{}, false
	}
	for _, layout := range []string{"15:04", "15:04:05", "3pm", "3:04pm"} {
		if c, err := time.Parse(layout, s[at+1:]); err == nil {
			y, m, day := d.From.Date()
			t := time.Date(y, m, day, c.Hour(), c.Minute(), c.Second(), c.Nanosecond(), now.Location())
			return Span{t, t}, true
		}
	}
	return Span{}, false
}

var numbers = []string{"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"}

// ago reads how long ago a moment is.
func ago(s string, now time.Time) (time.Time, error) {
	s = strings.TrimSuffix(s, " ago")
	if count, unit, ok := strings.Cut(s, " "); ok {
		n := slices.Index(numbers, count)
		switch {
		case count == "a" || count == "an":
			n = 1
		case n < 0:
			var err error
			if n, err = strconv.Atoi(count); err != nil || !digits(count) {
				if digits(count) {
					return time.Time{}, errLong
				}
				return time.Time{}, errUnits
			}
		}
		months := 0
		switch strings.TrimSuffix(unit, "s") {
		case "second", "sec":
			unit = "s"
		case "minute", "min":
			unit = "m"
		case "hour":
			unit = "h"
		case "day":
			unit = "d"
		case "week":
			unit = "w"
		case "month":
			months = 1
		case "year":
			months = 12
		default:
			return time.Time{}, errUnits
		}
		if months > 0 {
			if n > mostDays/31/months {
				return time.Time{}, errLong
			}
			return monthsBefore(now, n*months), nil
		}
		s = strconv.Itoa(n) + unit
	}
	days, rest, err := Split(s)
	return now.AddDate(0, 0, -days).Add(-rest), err
}

// monthsBefore is the same day of an earlier month, or its last.
func monthsBefore(now time.Time, n int) time.Time {
	t := now.AddDate(0, -n, 0)
	if t.Day() != now.Day() {
		t = t.AddDate(0, 0, -t.Day())
	}
	return t
}

// slashed refuses what has two readings, or looks as if it had.
func slashed(s string, parts []string) error {
	var readings []string
	for _, order := range [][2]int{{0, 1}, {1, 0}} {
		t, err := time.Parse("2006-1-2", parts[2]+"-"+parts[order[0]]+"-"+parts[order[1]])
		if text := t.Format(time.DateOnly); err == nil && !slices.Contains(readings, text) {
			readings = append(readings, text)
		}
	}
	switch len(readings) {
	case 0:
		return fmt.Errorf("%s is not a time: %s", human.Quote(s), Forms)
	case 1:
		return fmt.Errorf("%s has month or day first: write %s", human.Quote(s), readings[0])
	}
	return fmt.Errorf("%s may be either of two days: write %s", human.Quote(s), strings.Join(readings, " or "))
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
