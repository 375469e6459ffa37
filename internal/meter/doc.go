// Package meter counts what a store does and how long it takes, for monitoring. A count costs a few nanoseconds: the
// counters of what is done most are spread over several cache lines.
//
// Each kind has counters of what succeeded and failed, and a histogram of durations with the buckets Bounds. Meters
// live in memory only, and begin at 0 with the handle of a store.
package meter
