// Package meter counts the operations of a store and their durations, for monitoring. A count costs a
// few nanoseconds: the counters of the most frequent operations are spread over several cache lines.
//
// Each kind has counters of successes and failures, and a histogram of durations with the buckets
// Bounds. Meters are in memory only, and begin at 0 with the handle of a store.
package meter
