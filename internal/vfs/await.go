package vfs

import "time"

// Awaiter is a Shared on which one can sleep until another process wakes him. Not
// every system has such; elsewhere one looks from time to time.
type Awaiter interface {
	// Await returns when a word is not what it was, when somebody calls Wake for it,
	// after a while at most, or for no reason.
	Await(word int, was uint64, most time.Duration)
	// Wake wakes all who await a word, in whatever process.
	Wake(word int)
}
