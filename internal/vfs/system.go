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
	// since any fixed moment, never backwards; the store's clock tells without it
	Mono func() time.Duration
	// since the machine's boot, the same for all processes; without it the machine's, unless Inline or Mono is set
	Uptime func() time.Duration

	SpillBytes   int64  // the log since spilled that makes a new index due; 64 MiB
	BacklogBytes int64  // the log since spilled at which puts wait for the flushers, however fast they are; 1 GiB
	RoundBytes   int64  // documents that one round of the flusher takes; 64 MiB
	TempFiles    int    // that a worker of the flusher makes in one folder before it goes on in another; 65,536
	ArchiveBytes int64  // what archive/ may hold; 256 MiB, none when negative
	SmallVectors int64  // up to which size the vectors are written as a whole each time; 1 MiB
	LagBytes     int64  // from which size on the file of a scope of working memory may lag; 1 MiB
	WordsRows    int    // memories in a segment of words that a rebuild makes; 131,072
	Features     uint64 // of a store, that this program knows besides those of its build; see wal.Features
	Lacks        uint64 // features that this program lacks as an older one does
	Rounds       int64  // with Inline: after so many commits a round as in the background; none when 0
}
