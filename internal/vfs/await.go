package vfs

import "time"

// Awaiter is a Shared on which a process can sleep until another process wakes it. Only some systems support this; on
// the other systems callers poll the page.
type Awaiter interface {
	// Await returns when a word of the page differs from old, when Wake is called for the word, or when timeout has
	// passed. It may also return without a reason.
	Await(word int, old uint64, timeout time.Duration)
	// Wake wakes all callers that await a word, in any process.
	Wake(word int)
}
