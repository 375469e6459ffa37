package timearg

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/varve-db/varve/internal/human"
)

// Coming parses a time in the future. Where Parse reads a weekday, or a day without a year, as the last such day,
// Coming reads it as the next such day. It also accepts "in 3 days". For a day, week, month or year it returns the
// beginning.
func Coming(s string, now time.Time) (time.Time, error) {
	text := strings.ToLower(strings.Join(strings.Fields(s), " "))
	if far, ok := strings.CutPrefix(text, "in "); ok {
		t, err := apart(far, now, 1)
		if err != nil || strings.HasSuffix(far, "ago") || !t.After(now) {
			return time.Time{}, fmt.Errorf(
				"%s is not a time → write how long from now, for example 'in 3 days' or 'in 36h'",
				human.Quote(s))
		}
		return t, nil
	}
	at, err := Parse(s, now)
	if err != nil || at.From.After(now) {
		return at.From, err
	}
	for _, later := range candidateNows(text, now) {
		if next, err := Parse(s, later); err == nil && next.From.After(now) {
			return next.From, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s is in the past (%s)", human.Quote(s), at.From.Format("2006-01-02 15:04:05 -0700"))
}

// dayMonth matches a day without a year, with or without a time of day. It also matches texts such as 3 days ago.
var dayMonth = regexp.MustCompile(`^(\d{1,2} [a-z]{3,9}|[a-z]{3,9} \d{1,2})( at)?( \S+)?$`)

// candidateNows returns the times that Coming uses as "now" in calls of Parse, one after the other, when Coming
// looks for the next occurrence of a text that Parse reads as a time in the past. For a weekday, candidateNows
// returns a week after now. For a day without a year, it returns 1 to 8 years after now. For any other text it
// returns nil, because such a time does not recur.
func candidateNows(text string, now time.Time) (all []time.Time) {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "on "), ",", "")
	first, _, _ := strings.Cut(text, " ")
	if slices.ContainsFunc(weekdays, func(w string) bool { return first == w || first == w[:3] }) {
		return []time.Time{now.AddDate(0, 0, 7)}
	}
	if _, err := ago(text, now); err == nil || !dayMonth.MatchString(text) {
		return nil
	}
	for years := 1; years < 9; years++ { // 8 years include a leap year, also around 2100
		all = append(all, now.AddDate(years, 0, 0))
	}
	return all
}

// Spelled returns the unambiguous form of a number that Parse reads as a time: 20261122 is 2026-11-22, and 1795341600
// is @1795341600. It is for callers to which a plain number means something else. It returns false for any other text.
func Spelled(s string, now time.Time) (string, bool) {
	at, err := Parse(s, now)
	switch {
	case err != nil || !digits(s):
		return "", false
	case at.To.Equal(at.From):
		return "@" + s, true
	}
	return at.From.Format(time.DateOnly), true
}
