package vfs

import (
	"context"
	"io"
	"time"
)

// System is what an engine is built on where it is not the machine itself: the
// simulator sets it. Zero fields mean the machine's own.
type System struct {
	FS     FS
	Inline bool                                       // start no goroutines: all work is done in the caller's
	Rand   io.Reader                                  // for ids, nonces and names
	Sleep  func(context.Context, time.Duration) error // a wait that ends with ctx
	Mono   func() time.Duration                       // since any fixed moment, never backwards; the store's clock tells without it

	SpillBytes   int64 // the log since spilled that makes a new index due; 64 MiB
	BacklogBytes int64 // the log since spilled that makes puts wait; 1 GiB
	RoundBytes   int64 // documents that one round of the flusher takes; 64 MiB
	ArchiveBytes int64 // what archive/ may hold; 256 MiB, none when negative
	SmallVectors int64 // up to which size the vectors are written as a whole each time; 1 MiB
}
