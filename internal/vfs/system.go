package vfs

import (
	"context"
	"io"
	"time"
)

// System has the parts of the machine that an engine uses, and limits that tests change; the simulator sets it. Zero
// fields mean the real machine and the defaults named below.
type System struct {
	FS     FS
	Inline bool                                       // start no goroutines: all work is done by the caller
	Rand   io.Reader                                  // source of random bytes for ids, nonces and names
	Sleep  func(context.Context, time.Duration) error // waits until the duration has passed or ctx ends
	// Mono returns the time since any fixed moment and never decreases; nil: the store's clock is used
	Mono func() time.Duration
	// Uptime returns the time since boot, the same in all processes; nil: the machine's, unless Inline or Mono is set
	Uptime func() time.Duration

	SpillBytes int64 // bytes of log since the last index at which a new index is due; default 64 MiB
	// bytes of log since the last index at which puts wait for the flushers in any case; default 1 GiB
	BacklogBytes int64
	RoundBytes   int64 // bytes of documents per round of the flusher; default 64 MiB
	// number of files that a worker of the flusher creates in one folder before it uses another; default 65,536
	TempFiles int
	// Unnamed is the least number of changes of a round of the flusher that creates files without a name; default 16,
	// none if negative
	Unnamed      int
	ArchiveBytes int64  // maximum bytes of archive/; default 256 MiB, none if negative
	SmallVectors int64  // size in bytes up to which the vectors are rewritten as a whole each time; default 1 MiB
	LagBytes     int64  // size in bytes from which on the file of a scope of working memory may lag; default 1 MiB
	WordsRows    int    // number of memories per segment of words in a rebuild; default 131,072
	Features     uint64 // features that this program supports besides those of its build; see wal.Features
	Lacks        uint64 // features that this program lacks, to simulate an older one
	Rounds       int64  // with Inline: number of commits after which a round runs; 0 means no rounds
}
