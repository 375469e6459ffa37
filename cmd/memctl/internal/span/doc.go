// Package span parses and formats durations for people: Parse and Flag parse them (7d, 1h30m),
// Text, Seconds and Age format them. A day is 24 hours. Package timearg parses times.
package span
