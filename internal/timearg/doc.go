// Package timearg parses times as users write them.
//
//	2026-11-22, 20261122, 22.11.2026, 22 Nov 2026, Nov 22 2026   a day; without a year the last one
//	today, yesterday, tomorrow, friday, last friday              a day; friday may be today, last friday is not
//	yesterday 17:00, last friday at 5pm, 22 Nov 2026 10:00       a moment of a day
//	2026-11, Nov 2026, 2026                                      a month, a year
//	last week, this month, next year                             a week (from Monday), a month, a year
//	2026-11-22T10:00, 2026-11-22 10:00:05                        a moment
//	2026-11-22T10:00:00Z, 2026-11-22 10:00+01:00                 a moment, with its zone
//	now, @1795341600, 1795341600                                 a moment, by seconds since 1970
//	7d, 2w, 36h, 1h30m, 3 days ago, two weeks ago                how long ago: a moment
//
// A time without a zone is in the zone of now, which the caller chooses; memctl uses the local one. "A
// day ago" is the same time of the previous day, "a month ago" the same day of the previous month, or
// its last day if there is none.
//
// A period has a beginning and an end. So one rule applies to filters: since and until include the day,
// month or year that they name, after and before do not.
//
// Coming parses times in the future: there friday and 22 Nov are the next ones, and "in 3 days" is a
// moment.
//
// Anything else is an error, including a date that is not in the calendar, and one such as 01/02/2026
// that has two readings.
//
// # Why not a library
//
// Tried were olebedev/when 1.1.0 (yesterday is two days before where the clocks change in between; 40 Nov is
// December 10th; monday is the next one; no weeks and months), tj/go-naturaldate 1.3.0 (nonsense is now) and
// markusmobius/go-dateparser 1.4.7 (right in nearly all, and needs 240 ms and 95 MB at the start of every
// process, 8 MB in the program; does not read "last friday" and "2w").
package timearg
