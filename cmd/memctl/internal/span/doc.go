// Package span reads and writes times and durations as people do: Time and Moment read when
// (2026-01-31, 90m ago), Parse and Flag how long (7d, 1h30m), Text, Seconds and Age write it.
//
// A day is 24 hours in a duration; "a day ago" is the same time of the day before.
package span
