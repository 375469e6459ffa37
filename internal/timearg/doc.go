// Package timearg parses times as users write them.
//
//	2026-11-22, 20261122, 22.11.2026, 22 Nov 2026, Nov 22 2026   a day; without a year, the last such day
//	today, yesterday, tomorrow, friday, last friday              a day; friday may be today, last friday may not
//	yesterday 17:00, last friday at 5pm, 22 Nov 2026 10:00       a moment of a day
//	2026-11, Nov 2026, 2026                                      a month, a year
//	last week, this month, next year                             a week (from Monday), a month, a year
//	2026-11-22T10:00, 2026-11-22 10:00:05                        a moment
//	2026-11-22T10:00:00Z, 2026-11-22 10:00+01:00                 a moment, with its zone
//	now, @1795341600, 1795341600                                 a moment, by seconds since 1970
//	7d, 2w, 36h, 1h30m, 3 days ago, two weeks ago                a moment, given by how long ago it is
//
// A time without a zone is in the zone of now, which the caller chooses; memctl uses the local one. "A
// day ago" is the same time of the previous day, "a month ago" the same day of the previous month, or
// its last day if that month is shorter.
//
// A day, a week, a month or a year is a period with a beginning and an end. In filters, since and until
// include the period that they name; after and before exclude it.
//
// Coming parses times in the future: it takes friday and 22 Nov as the next such days, and also accepts
// "in 3 days".
//
// Any other text is an error, including a date that is not in the calendar, and a date with slashes such
// as 01/02/2026, which may mean two different days.
//
// # Why not a library
//
// These libraries were tried:
//
//   - olebedev/when 1.1.0: takes yesterday as two days before if the clocks changed in between, 40 Nov as
//     December 10th, and monday as the next one; does not know weeks and months.
//   - tj/go-naturaldate 1.3.0: returns the present time for text that is not a time.
//   - markusmobius/go-dateparser 1.4.7: parses nearly all of these forms, except "last friday" and "2w", but
//     takes 240 ms and 95 MB at the start of every process, and adds 8 MB to the program.
package timearg
