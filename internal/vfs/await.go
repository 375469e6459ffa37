package vfs

import "time"

// Awaiter is a Shared on which a process can sleep until another process wakes it. Only some systems support it; on the
// others callers poll.
type Awaiter interface {
	// Await returns when a word differs from was, when Wake is called for it, after most at the latest, or spuriously.
	Await(word int, was uint64, most time.Duration)
	// Wake wakes all callers that await a word, in any process.
	Wake(word int)
}
