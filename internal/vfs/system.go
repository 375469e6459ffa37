package vfs

import (
	"context"
	"io"
	"time"
)

// System has the functions of the machine that an engine uses, and the limits that tests change; the simulator sets
// it. Zero fields mean the machine's own functions and the defaults given below.
type System struct {
	FS     FS
	Inline bool                                       // start no goroutines: all work is done by the caller
	Rand   io.Reader                                  // source of random bytes for ids, nonces and names
	Sleep  func(context.Context, time.Duration) error // waits until the duration has passed or ctx ends
	// Mono returns the time since any fixed moment and never decreases; nil: the store's clock is used
	Mono func() time.Duration
	// Uptime returns the time since boot, the same in all processes; nil: the machine's, unless Inline or Mono is set
	Uptime func() time.Duration

	SpillBytes   int64  // log bytes since spilled at which a new index is due; 64 MiB
	BacklogBytes int64  // log bytes since spilled at which puts wait for the flushers in any case; 1 GiB
	RoundBytes   int64  // bytes of documents per round of the flusher; 64 MiB
	TempFiles    int    // files that a worker of the flusher creates in one folder before it uses another; 65,536
	ArchiveBytes int64  // maximum size of archive/; 256 MiB, none if negative
	SmallVectors int64  // size up to which the vectors are rewritten as a whole each time; 1 MiB
	LagBytes     int64  // size from which on the file of a scope of working memory may lag; 1 MiB
	WordsRows    int    // memories per segment of words in a rebuild; 131,072
	Features     uint64 // features that this program supports besides those of its build; see wal.Features
	Lacks        uint64 // features that this program lacks, to simulate an older one
	Rounds       int64  // with Inline: number of commits after which a flush runs; 0 means no flushes
}
