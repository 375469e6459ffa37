// Package span reads and writes durations as people do: Parse and Flag read them (7d, 1h30m), Text,
// Seconds and Age write them. A day is 24 hours. Times are read by package when.
package span
