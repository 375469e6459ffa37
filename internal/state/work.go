package state

import (
	"strings"

	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/wal"
)

// Working memory is in no index: only a scope's file and the entries in the log have it. The overlay has the
// position of a scope's newest entry. So a flush must keep one invariant: before the position of an entry falls
// below spilled, and so leaves the overlay and the log, the scope's file has the changes of the entry, durably.
//
// So a scope has a version of its own if it changed since the index was written. All other scopes share one
// number, which changes with every swap of the index. A precondition on that number fails if the scope changed,
// and also if only the index was replaced; a writer whose precondition fails reads the scope again. Positions
// are multiples of 8, and that number never is.

// Work returns the position of the newest log entry of a scope of working memory. If the overlay has no such entry, it
// returns another number, for which IsWork returns false. That number changes whenever the overlay may have dropped
// such a position.
func (s *State) Work(scope string) uint64 {
	// In this order: a position that is dropped between the two was dropped after a swap.
	if at, _, ok := s.overlay.Load().Get(record.Working, scope); ok {
		return at
	}
	return s.swaps.Load()<<3 | 1
}

// IsWork reports whether n, a result of Work, is a position in the log.
func IsWork(n uint64) bool { return n&7 == 0 }

// Breaks returns the number of times that log entries of working memory were skipped without a call of Worked, because
// a newer index and the files of the scopes include them already.
func (s *State) Breaks() uint64 { return s.breaks.Load() }

// work applies a log entry of working memory; the caller holds mu.
func (s *State) work(e *wal.Entry) {
	scope := strings.Clone(e.Key[1:]) // the key is in the reader's buffer
	if s.Worked != nil {
		s.Worked(scope, e.LSN)
	}
	s.overlay.Load().Put(record.Working, scope, e.LSN, e.Delete)
	s.applied = e.LSN
}
