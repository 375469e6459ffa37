package timearg

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/varve-db/varve/internal/human"
)

// Span is the time that a text names: a moment if From and To are equal, otherwise a period that includes From and
// excludes To.
type Span struct{ From, To time.Time }

// After returns the first moment after the span.
func (s Span) After() time.Time {
	if s.To.After(s.From) {
		return s.To
	}
	return s.From.Add(1)
}

// Forms describes the forms of times that Parse accepts, for error messages.
const Forms = "write a day (2026-11-22, 22 Nov 2026, yesterday, last friday), a month or a year (2026-11, last " +
	"month, 2026), " +
	"a moment (2026-11-22T10:00, with a zone 2026-11-22T10:00:00Z), or how long ago (7d, 36h, 3 days ago)"

// Parse parses a time; one without a zone is in the zone of now. It refuses times that are not after the zero
// time: a zero time as the end of a range would mean that the range has no end.
func Parse(s string, now time.Time) (Span, error) {
	at, err := parse(s, now)
	if err == nil && (at.From.Year() < 1 || !at.From.After(time.Time{}) || !at.To.After(time.Time{})) {
		return Span{}, fmt.Errorf("%s is too long ago: not after the beginning of the year 1", human.Quote(s))
	}
	return at, err
}

func parse(s string, now time.Time) (Span, error) {
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
	if err := misnamed(s, text, now); err != nil {
		return Span{}, err
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

// Moment parses a point in time: a date with a time of day, or seconds since 1970. It returns false for any other text.
func Moment(s string, zone *time.Location) (time.Time, bool) {
	for _, at := range []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04"} {
		for _, z := range []string{"", "Z07:00", "Z0700", " Z07:00", " -0700"} {
			if z == "" {
				if t, err := time.Parse(at, s); err == nil {
					return wallTimeIn(t, zone), true
				}
			} else if t, err := time.ParseInLocation(at+z, s, zone); err == nil {
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

// begins returns the first moment of a day. This is not 00:00 if the clocks are set forward at that time. If the clocks
// skip the whole day, it is the first moment of the next day.
func begins(y int, m time.Month, d int, zone *time.Location) time.Time {
	day := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	t := time.Date(y, m, d, 0, 0, 0, 0, zone)
	from, to := t.ZoneBounds()
	switch {
	case date(t).Before(day):
		return to
	case date(t).After(day):
		return from
	case from.IsZero() || date(from).Before(day):
		return t
	}
	before := from.Add(-1)
	if date(before).Before(day) {
		return from
	}
	_, offset := before.Zone() // 00:00 comes twice
	return day.Add(-time.Duration(offset) * time.Second).In(zone)
}

// date returns the date of a time, as midnight in UTC.
func date(t time.Time) time.Time {
	y, m, d := t.Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}

// wallTimeIn returns the time at which the clocks of a zone show the date and time of day that t has in UTC. If
// the clocks skip that time of day, wallTimeIn returns another time on the same day.
func wallTimeIn(t time.Time, zone *time.Location) time.Time {
	y, m, d := t.Date()
	at := time.Date(y, m, d, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), zone)
	if day := date(t); !date(at).Equal(day) {
		return begins(y, m, d, zone).Add(t.Sub(day))
	}
	if !shown(at).Equal(t) {
		// The clocks skip this time: the result is later by as much as they are set forward, in every
		// zone. time.Date uses the offset from before or from after, depending on the zone.
		_, before := at.Add(-beforeGap).Zone()
		return time.Unix(t.Unix()-int64(before), int64(t.Nanosecond())).In(zone)
	}
	return at
}

// beforeGap is a duration that is longer than any change of the clocks and shorter than the time between two changes of
// the clocks.
const beforeGap = 12 * time.Hour

// shown returns the date and time of day that the clocks in t's zone show at the time t, as a time in UTC.
func shown(t time.Time) time.Time {
	return date(t).Add(time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute +
		time.Duration(t.Second())*time.Second + time.Duration(t.Nanosecond()))
}

// dayOf returns the span of a calendar day in a zone.
func dayOf(date time.Time, zone *time.Location) Span {
	y, m, d := date.Date()
	return Span{begins(y, m, d, zone), begins(y, m, d+1, zone)}
}

var weekdays = []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}

// day parses a text that names a day, and returns false for any other text.
func day(s string, now time.Time) (Span, bool) {
	plain := strings.ReplaceAll(s, ",", "")
	for _, layout := range []string{time.DateOnly, "20060102", "2006/01/02", "2.1.2006", "2 Jan 2006", "2 January 2006",
		"Jan 2 2006", "January 2 2006", "Mon 2 Jan 2006", "Monday 2 January 2006"} {
		t, err := time.Parse(layout, plain)
		if named := strings.HasPrefix(layout, "Mon"); err == nil && (!named || strings.HasPrefix(plain, weekday(t)[:3])) {
			return dayOf(t, now.Location()), true
		}
	}
	if at := slices.Index([]string{"yesterday", "today", "tomorrow"}, s); at >= 0 {
		return dayOf(date(now).AddDate(0, 0, at-1), now.Location()), true
	}
	name, last := strings.CutPrefix(s, "last ")
	name = strings.TrimPrefix(name, "on ")
	if d := slices.IndexFunc(weekdays, func(w string) bool { return name == w || name == w[:3] }); d >= 0 {
		back := (int(now.Weekday()) - d + 7) % 7
		if last && back == 0 {
			back = 7
		}
		return dayOf(date(now).AddDate(0, 0, -back), now.Location()), true
	}
	for _, layout := range []string{"2 Jan 2006", "2 January 2006", "Jan 2 2006", "January 2 2006"} {
		for year := now.Year(); year > now.Year()-9; year-- { // 9: until a leap year, also around 1900
			t, err := time.Parse(layout, plain+" "+strconv.Itoa(year))
			if err != nil {
				continue
			}
			if at := dayOf(t, now.Location()); !at.From.After(now) {
				return at, true
			}
		}
	}
	return Span{}, false
}

func weekday(t time.Time) string { return weekdays[t.Weekday()] }

// misnamed returns an error if a day is given together with the name of a weekday that is not the weekday of that day.
func misnamed(s, text string, now time.Time) error {
	name, rest, _ := strings.Cut(text, " ")
	name = strings.TrimSuffix(name, ",")
	if !slices.ContainsFunc(weekdays, func(w string) bool { return name == w || name == w[:3] }) {
		return nil
	}
	at, ok := day(rest, now)
	if !ok {
		at, ok = clocked(rest, now)
	}
	if !ok || strings.HasPrefix(weekday(at.From), name) {
		return nil
	}
	return fmt.Errorf("%s is not a time: %s is a %s", human.Quote(s), at.From.Format(time.DateOnly), at.From.Weekday())
}

// period parses a month, a year, or a week, and returns false for any other text.
func period(s string, now time.Time) (Span, bool) {
	for _, layout := range []string{"2006-01", "Jan 2006", "January 2006"} {
		if t, err := time.Parse(layout, s); err == nil {
			y, m, _ := t.Date()
			return Span{begins(y, m, 1, now.Location()), begins(y, m+1, 1, now.Location())}, true
		}
	}
	if t, err := time.Parse("2006", s); err == nil && t.Year() >= 1000 {
		return Span{begins(t.Year(), 1, 1, now.Location()), begins(t.Year()+1, 1, 1, now.Location())}, true
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
		return begins(y, m+time.Month(months), d+days, now.Location())
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

// clocked parses a day followed by a time of day, and returns false for any other text.
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
			t := wallTimeIn(date(d.From).Add(c.Sub(date(c))), now.Location())
			return Span{t, t}, true
		}
	}
	return Span{}, false
}

var numbers = []string{"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
	"twelve"}

// ago parses a text such as "3 days ago" or "7d", and returns the time that is so long before now.
func ago(s string, now time.Time) (time.Time, error) {
	return apart(strings.TrimSuffix(s, " ago"), now, -1)
}

// apart parses a length of time, such as "3 days" or "36h", and returns the time that is so far from now: after now if
// sign is 1, before now if sign is -1.
func apart(s string, now time.Time, sign int) (time.Time, error) {
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
			if n > MostDays/31/months {
				return time.Time{}, errLong
			}
			return monthsBefore(now, -sign*n*months), nil
		}
		s = strconv.Itoa(n) + unit
	}
	days, rest, err := Split(s)
	if days > 0 {
		now = wallTimeIn(shown(now).AddDate(0, 0, sign*days), now.Location())
	}
	return now.Add(time.Duration(sign) * rest), err
}

// monthsBefore returns the same day and time of day n months before now; after now if n is negative. If that month has
// no such day, it returns the last day of the month.
func monthsBefore(now time.Time, n int) time.Time {
	y, m, d := now.Date()
	last := time.Date(y, m-time.Month(n)+1, 0, 0, 0, 0, 0, time.UTC)
	t := shown(now)
	return wallTimeIn(last.AddDate(0, 0, min(d, last.Day())-last.Day()).Add(t.Sub(date(t))), now.Location())
}

// slashed returns the error for a date with slashes: it names each day that the date may mean.
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
		return fmt.Errorf("%s: month and day are ambiguous in this form → write %s", human.Quote(s), readings[0])
	}
	return fmt.Errorf("%s may mean two different days → write %s", human.Quote(s), strings.Join(readings, " or "))
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
