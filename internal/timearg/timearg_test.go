package timearg

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata"
)

func berlin(t testing.TB, s string) time.Time { return at(t, "Europe/Berlin", s) }

func at(t testing.TB, zone, s string) time.Time {
	in, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	at, err := time.ParseInLocation("2006-01-02 15:04:05", s, in)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestParse has each form, read on one Thursday: its beginning, and its end if it is a period.
func TestParse(t *testing.T) {
	t.Parallel()
	now := berlin(t, "2026-11-26 15:04:05")
	for s, want := range map[string]string{
		"2026-11-22": "2026-11-22 2026-11-23", "20261122": "2026-11-22 2026-11-23", "2026/11/22": "2026-11-22 2026-11-23", "22.11.2026": "2026-11-22 2026-11-23", "1.2.2026": "2026-02-01 2026-02-02",
		"22 Nov 2026": "2026-11-22 2026-11-23", "22 november 2026": "2026-11-22 2026-11-23", "Nov 22 2026": "2026-11-22 2026-11-23", "November 22, 2026": "2026-11-22 2026-11-23", " 2  jan 2026 ": "2026-01-02 2026-01-03",
		"22 Nov": "2026-11-22 2026-11-23", "nov 26": "2026-11-26 2026-11-27", "27 Nov": "2025-11-27 2025-11-28", "Feb 29": "2024-02-29 2024-03-01",
		"2024-02-29": "2024-02-29 2024-03-01", "2026-12-31": "2026-12-31 2027-01-01",
		"today": "2026-11-26 2026-11-27", "Yesterday": "2026-11-25 2026-11-26", "tomorrow": "2026-11-27 2026-11-28",
		"monday": "2026-11-23 2026-11-24", "thursday": "2026-11-26 2026-11-27", "thu": "2026-11-26 2026-11-27", "last thursday": "2026-11-19 2026-11-20", "friday": "2026-11-20 2026-11-21", "last Fri": "2026-11-20 2026-11-21", "on sunday": "2026-11-22 2026-11-23",
		"2026-11": "2026-11-01 2026-12-01", "Nov 2026": "2026-11-01 2026-12-01", "december 2025": "2025-12-01 2026-01-01", "2026": "2026-01-01 2027-01-01", "1999": "1999-01-01 2000-01-01",
		"last week": "2026-11-16 2026-11-23", "this week": "2026-11-23 2026-11-30", "next week": "2026-11-30 2026-12-07",
		"last month": "2026-10-01 2026-11-01", "this month": "2026-11-01 2026-12-01", "next month": "2026-12-01 2027-01-01",
		"last year": "2025-01-01 2026-01-01", "this year": "2026-01-01 2027-01-01", "next year": "2027-01-01 2028-01-01",

		"2026-11-22T10:00": "2026-11-22 10:00:00", "2026-11-22 10:00:05": "2026-11-22 10:00:05", "2026-11-22T10:00:05.25": "2026-11-22 10:00:05.25",
		"2026-11-22T10:00:00Z": "2026-11-22 11:00:00", "2026-11-22 10:00+05:30": "2026-11-22 05:30:00", "2026-11-22 10:00:00 -0700": "2026-11-22 18:00:00", "2026-11-22T10:00Z": "2026-11-22 11:00:00",
		"now": "", "sunday 22 november 2026": "2026-11-22 2026-11-23", "Sun, 22 Nov 2026": "2026-11-22 2026-11-23", "Sun 22 Nov 2026 10:00": "2026-11-22 10:00:00", "@1795341600": "2026-11-22 11:00:00", "1795341600": "2026-11-22 11:00:00", "@0": "1970-01-01 01:00:00",
		"yesterday 17:00": "2026-11-25 17:00:00", "last friday at 5pm": "2026-11-20 17:00:00", "22 Nov 2026 10:00": "2026-11-22 10:00:00", "Nov 22, 2026 9:30pm": "2026-11-22 21:30:00", "today 10:00:05": "2026-11-26 10:00:05",
		"7d": "2026-11-19 15:04:05", "2w": "2026-11-12 15:04:05", "36h": "2026-11-25 03:04:05", "1w1d2h": "2026-11-18 13:04:05", "1h30m": "2026-11-26 13:34:05", "7d ago": "2026-11-19 15:04:05",
		"3 days ago": "2026-11-23 15:04:05", "two weeks ago": "2026-11-12 15:04:05", "a month ago": "2026-10-26 15:04:05", "1 year ago": "2025-11-26 15:04:05", "an hour ago": "2026-11-26 14:04:05", "90 minutes ago": "2026-11-26 13:34:05", "5 days": "2026-11-21 15:04:05", "0 seconds ago": "2026-11-26 15:04:05",
	} {
		got, err := Parse(s, now)
		switch from, to := got.From.Format("2006-01-02 15:04:05.999"), got.To.Format("2006-01-02 15:04:05.999"); {
		case err != nil:
			t.Errorf("%q: %v", s, err)
		case s == "now":
			if !got.From.Equal(now) || !got.To.Equal(now) {
				t.Errorf("now is %v", got)
			}
		case len(want) == 21:
			if from += " " + to; strings.ReplaceAll(from, " 00:00:00", "") != want {
				t.Errorf("%q is %s, want %s", s, from, want)
			}
		case !got.From.Equal(got.To) || got.From.In(now.Location()).Format("2006-01-02 15:04:05.999") != want:
			t.Errorf("%q is %s to %s, want %s", s, from, to, want)
		}
	}
}

// TestUneven has changes of the clocks, and months of different lengths.
func TestUneven(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ now, s, from, to string }{
		{"2026-03-30 00:30:00", "yesterday", "2026-03-29 00:00:00", "2026-03-30 00:00:00"}, // 23 hours
		{"2026-10-26 00:30:00", "yesterday", "2026-10-25 00:00:00", "2026-10-26 00:00:00"}, // 25
		{"2026-03-30 00:30:00", "1d", "2026-03-29 00:30:00", ""},
		{"2026-03-30 00:30:00", "24h", "2026-03-28 23:30:00", ""},
		{"2026-03-31 12:00:00", "1 month ago", "2026-02-28 12:00:00", ""},
		{"2026-05-31 12:00:00", "last month", "2026-04-01 00:00:00", "2026-05-01 00:00:00"},
		{"2024-02-29 12:00:00", "1 year ago", "2023-02-28 12:00:00", ""},
		{"2024-02-29 12:00:00", "last year", "2023-01-01 00:00:00", "2024-01-01 00:00:00"},
		{"2026-01-15 12:00:00", "14 months ago", "2024-11-15 12:00:00", ""},
		{"2026-01-01 12:00:00", "last week", "2025-12-22 00:00:00", "2025-12-29 00:00:00"},
		{"2026-11-22 12:00:00", "this week", "2026-11-16 00:00:00", "2026-11-23 00:00:00"}, // a Sunday
		{"2026-11-22 12:00:00", "sunday", "2026-11-22 00:00:00", "2026-11-23 00:00:00"},
		{"2026-11-22 12:00:00", "last sunday", "2026-11-15 00:00:00", "2026-11-16 00:00:00"},
	} {
		if c.to == "" {
			c.to = c.from
		}
		got, err := Parse(c.s, berlin(t, c.now))
		if err != nil || !got.From.Equal(berlin(t, c.from)) || !got.To.Equal(berlin(t, c.to)) {
			t.Errorf("%s at %s: %v, %v; want %s to %s", c.s, c.now, got, err, c.from, c.to)
		}
	}
}

// TestMidnight has days whose midnight the clocks skip or show twice, and a day that did not exist.
func TestMidnight(t *testing.T) {
	t.Parallel()
	const azores, santiago, havana, amman, toronto, apia = "Atlantic/Azores", "America/Santiago", "America/Havana", "Asia/Amman", "America/Toronto", "Pacific/Apia"
	for _, c := range []struct{ zone, now, s, from, to string }{
		{azores, "2026-03-30 00:30:00", "2026-03-29", "2026-03-29 01:00:00", "2026-03-30 00:00:00"},
		{azores, "2026-03-30 00:30:00", "2026-03-28", "2026-03-28 00:00:00", "2026-03-29 01:00:00"},
		{azores, "2026-03-30 00:30:00", "yesterday", "2026-03-29 01:00:00", "2026-03-30 00:00:00"},
		{azores, "2026-03-28 00:30:00", "tomorrow", "2026-03-29 01:00:00", "2026-03-30 00:00:00"},
		{azores, "2026-03-29 01:30:00", "today", "2026-03-29 01:00:00", "2026-03-30 00:00:00"},
		{azores, "2026-03-30 00:30:00", "sunday", "2026-03-29 01:00:00", "2026-03-30 00:00:00"},
		{azores, "2026-04-01 00:30:00", "last sunday", "2026-03-29 01:00:00", "2026-03-30 00:00:00"},
		{azores, "2026-03-30 00:30:00", "29 Mar", "2026-03-29 01:00:00", "2026-03-30 00:00:00"},
		{azores, "2026-03-29 01:00:00", "29 Mar", "2026-03-29 01:00:00", "2026-03-30 00:00:00"},
		{azores, "2026-03-28 23:30:00", "29 Mar", "2025-03-29 00:00:00", "2025-03-30 01:00:00"},
		{azores, "2026-03-30 00:30:00", "29 Mar 2026 10:00", "2026-03-29 10:00:00", ""},
		{azores, "2026-03-30 00:30:00", "29 Mar 2026 00:30", "2026-03-29 01:30:00", ""},
		{azores, "2026-03-30 00:30:00", "2026-03-29 00:30", "2026-03-29 01:30:00", ""},
		{azores, "2026-03-30 00:30:00", "yesterday at 10:00", "2026-03-29 10:00:00", ""},
		{azores, "2026-03-30 00:30:00", "1d", "2026-03-29 01:30:00", ""},
		{azores, "2026-04-29 00:30:00", "1 month ago", "2026-03-29 01:30:00", ""},
		{azores, "2026-04-29 00:30:00", "2 months ago", "2026-02-28 00:30:00", ""},
		{azores, "2027-03-29 00:30:00", "1 year ago", "2026-03-29 01:30:00", ""},
		{azores, "2026-10-26 00:30:00", "yesterday", "2026-10-25 00:00:00", "2026-10-26 00:00:00"}, // 25 hours
		{santiago, "2026-09-07 00:30:00", "yesterday", "2026-09-06 01:00:00", "2026-09-07 00:00:00"},
		{santiago, "2026-09-07 00:30:00", "6 Sep 2026 10:00", "2026-09-06 10:00:00", ""},
		{santiago, "2026-09-07 00:30:00", "sep 6", "2026-09-06 01:00:00", "2026-09-07 00:00:00"},
		{santiago, "2026-10-06 00:30:00", "a month ago", "2026-09-06 01:30:00", ""},
		{havana, "2026-03-09 00:30:00", "yesterday", "2026-03-08 01:00:00", "2026-03-09 00:00:00"},
		{havana, "2026-03-09 00:30:00", "8 Mar 2026 10:00", "2026-03-08 10:00:00", ""},
		{havana, "2026-03-09 00:30:00", "7 Mar", "2026-03-07 00:00:00", "2026-03-08 01:00:00"},
		{havana, "2026-04-08 00:30:00", "1 month ago", "2026-03-08 01:30:00", ""},
		{"America/Asuncion", "2017-10-05 12:00:00", "2017-10", "2017-10-01 01:00:00", "2017-11-01 00:00:00"},
		{"America/Asuncion", "2017-10-05 12:00:00", "this month", "2017-10-01 01:00:00", "2017-11-01 00:00:00"},
		{"America/Asuncion", "2017-10-05 12:00:00", "Sep 2017", "2017-09-01 00:00:00", "2017-10-01 01:00:00"},
		{toronto, "1919-04-02 12:00:00", "1919-03-31", "1919-03-31 00:30:00", "1919-04-01 00:00:00"}, // 23:30 was 00:30
		{apia, "2012-01-02 12:00:00", "2011-12-29", "2011-12-29 00:00:00", "2011-12-31 00:00:00"},
		{apia, "2012-01-02 12:00:00", "2011-12-31", "2011-12-31 00:00:00", "2012-01-01 00:00:00"},
	} {
		if c.to == "" {
			c.to = c.from
		}
		got, err := Parse(c.s, at(t, c.zone, c.now))
		if err != nil || !got.From.Equal(at(t, c.zone, c.from)) || !got.To.Equal(at(t, c.zone, c.to)) {
			t.Errorf("%s at %s in %s: %v, %v; want %s to %s", c.s, c.now, c.zone, got, err, c.from, c.to)
		}
	}
	if got, err := Parse("2021-10-29", at(t, amman, "2021-11-01 12:00:00")); err != nil || got.To.Sub(got.From) != 25*time.Hour {
		t.Errorf("the day with two midnights: %v, %v", got, err)
	}
	if got, err := Parse("1h", at(t, "America/New_York", "2026-11-01 00:30:00").Add(2*time.Hour)); err != nil || got.From.UTC().Hour() != 5 {
		t.Errorf("an hour before the second 01:30: %v, %v", got, err)
	}
}

// TestYearOne verifies that Parse refuses times up to the zero time: as a bound, the zero time would mean no bound.
func TestYearOne(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 15, 4, 5, 0, time.UTC)
	for _, s := range []string{"0001-01-01", "0000-12-31", "0000-12", "0001-01", "jan 0001", "0000-06-01", "1 jan 0000", "0001-01-01 00:00", "0001-01-01T00:00:00Z", "0001-01-01T05:00:00+06:00", "0000-12-31T22:00:00-06:00", "1 jan 0001 00:00"} {
		if got, err := Parse(s, now); err == nil || !strings.Contains(err.Error(), "is too long ago: not after the beginning of the year 1") {
			t.Errorf("%s: %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"0001-01-02", "0001-02", "0001-01-01 00:01"} {
		if got, err := Parse(s, now); err != nil || got.From.IsZero() || got.To.IsZero() {
			t.Errorf("%s: %v, %v", s, got, err)
		}
	}
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	now := berlin(t, "2026-11-26 15:04:05")
	for s, want := range map[string]string{
		"": `"" is not a time: write a day (2026-11-22,`, "tomorow": `"tomorow" is not a time`, "soon": "is not", "x": "is not", "12": "is not", "-1d": "is not", "+1d": "is not", "1d-1h": "is not", "5y": "is not", "1.5d": "is not", "3d2w": "is not",
		"2026-13-45": "is not", "2025-02-29": "is not", "31 Feb 2026": "is not", "40 Nov": "is not", "22.13.2026": "is not", "yesterday 25:00": "is not", "meeting yesterday": "is not", "last christmas": "is not", "last": "is not", "last monday week": "is not",
		"one": "is not", "a ago": "is not", "-3 days ago": "is not", "3 fortnights ago": "is not", "0123": "is not", "@": "is not", "@x": "is not", "@-5": "is not", "@99999999999999": "is not", "2026-11-22T10": "is not", "2026-11-22T10:00:00+99:00": "is not",
		"100001d": `"100001d" is too long ago: more than 100000 days`, "99999999999999999999 days ago": "too long ago", "5000 years ago": "too long ago", "100000 months": "too long ago",
		"Monday 22 November 2026": `"Monday 22 November 2026" is not a time: 2026-11-22 is a Sunday`, "Mon, 22 Nov 2026": "is a Sunday", "mon 22 nov 2026 at 10:00": "is a Sunday", "Monday 40 November 2026": "write a day", "monday monday": "write a day",
		"01/02/2026": "may mean two different days → write 2026-01-02 or 2026-02-01", "13/02/2026": "month and day are ambiguous in this form → write 2026-02-13", "2/2/2026": "write 2026-02-02", "13/13/2026": "is not a time",
		strings.Repeat("y", 1<<20): "(1048576 bytes) is not a time",
	} {
		if got, err := Parse(s, now); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 500 {
			t.Errorf("%.40q: %v, %v; want %s", s, got, err, want)
		}
	}
}

// TestComing verifies that Coming returns the next occurrence where Parse returns the last one, and that it accepts no
// time in the past.
func TestComing(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 15, 0, 0, 0, time.UTC) // a Thursday
	for s, want := range map[string]string{
		"friday": "2026-11-27T00:00:00Z", "Fri": "2026-11-27T00:00:00Z", "on friday": "2026-11-27T00:00:00Z", "wednesday": "2026-12-02T00:00:00Z",
		"thursday": "2026-12-03T00:00:00Z", "thursday 17:00": "2026-11-26T17:00:00Z", "thursday at 2pm": "2026-12-03T14:00:00Z",
		"22 Nov": "2027-11-22T00:00:00Z", "Dec 1": "2026-12-01T00:00:00Z", "29 Feb": "2028-02-29T00:00:00Z", "22 Nov at 10:00": "2027-11-22T10:00:00Z",
		"tomorrow": "2026-11-27T00:00:00Z", "next week": "2026-11-30T00:00:00Z", "next month": "2026-12-01T00:00:00Z", "2027": "2027-01-01T00:00:00Z",
		"in 3 days": "2026-11-29T15:00:00Z", "in 36h": "2026-11-28T03:00:00Z", "in two weeks": "2026-12-10T15:00:00Z", "in a month": "2026-12-26T15:00:00Z", "In  7d": "2026-12-03T15:00:00Z",
		"today 15:01": "2026-11-26T15:01:00Z", "2026-11-26T15:00:01Z": "2026-11-26T15:00:01Z",
	} {
		if got, err := Coming(s, now); err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("%q: %v, %v, want %s", s, got, err, want)
		}
	}
	for s, want := range map[string]string{
		"last friday": "in the past", "yesterday": "in the past", "today": "in the past", "now": "in the past", "7d": "in the past", "3 days": "in the past", "3 days ago": "in the past",
		"2026-11-25": "in the past (2026-11-25 00:00:00 +0000)", "fri 20 nov 2026": "in the past", "20 Nov 2026": "in the past", "this week": "in the past", "2026-11-26T15:00:00Z": "in the past",
		"soon": "is not a time", "in": "is not a time", "in 0 days": "how long from now", "in 3 days ago": "how long from now", "in friday": "how long from now",
	} {
		if got, err := Coming(s, now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, not %q", s, got, err, want)
		}
	}
}

func TestSpelled(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 15, 0, 0, 0, time.UTC)
	for s, want := range map[string]string{"20261122": "2026-11-22", "2026": "2026-01-01", "1795341600": "@1795341600", "67108992": "", "5": "", "2026-11-22": "", "7d": ""} {
		if got, ok := Spelled(s, now); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v, want %q", s, got, ok, want)
		}
	}
}

// FuzzParse verifies that no text is a period that ends before it begins, and that Split returns no negative span.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"7d", "2026-11-22", "last friday at 5pm", "Nov 22, 2026", "@1", "3 days ago", "29 Feb", "100000d32h", "01/02/2026", "9999", "next week"} {
		f.Add(s)
	}
	now := berlin(f, "2026-11-26 15:04:05")
	f.Fuzz(func(t *testing.T, s string) {
		at, err := Parse(s, now)
		if err == nil && (at.To.Before(at.From) || !at.From.After(time.Time{})) {
			t.Fatalf("%q is %v", s, at)
		}
		if days, rest, err := Split(s); err == nil && (days < 0 || rest < 0) {
			t.Fatalf("%q is %d days and %v", s, days, rest)
		}
	})
}

// TestHourLeftOut verifies that a time of day that the clocks skip is read as the time that much later, in every zone.
// time.Date goes back in America and forward in Europe.
func TestHourLeftOut(t *testing.T) {
	for zone, c := range map[string][3]string{
		"America/New_York":    {"2026-03-08 02:30", "2026-03-08 03:30", "2026-07-01 12:00:00"},
		"America/Los_Angeles": {"2026-03-08 02:00", "2026-03-08 03:00", "2026-07-01 12:00:00"},
		"Europe/Berlin":       {"2026-03-29 02:30", "2026-03-29 03:30", "2026-07-01 12:00:00"},
		"Australia/Lord_Howe": {"2025-10-05 02:10", "2025-10-05 02:40", "2026-07-01 12:00:00"},
	} {
		got, err := Parse(c[0], at(t, zone, c[2]))
		if err != nil || got.From.Format("2006-01-02 15:04") != c[1] {
			t.Errorf("%s in %s: %v %v, want %s", c[0], zone, got.From, err, c[1])
		}
	}
}
