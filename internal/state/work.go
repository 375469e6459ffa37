package state

import (
	"strings"

	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/wal"
)

// Working memory is in no index: only a scope's file and the entries in the log hold it. The overlay has the position
// of a scope's newest entry. A flush must keep one invariant for that: before a position falls below spilled, and so
// out of the overlay and the log, the scope's file has its contents, durably.
//
// So a scope has its own version as long as it changed since the index was written. All other scopes share one number,
// which changes with every swap. A precondition on that number fails if the scope changed, and also if only the index
// was replaced; a writer whose precondition fails looks again. Positions are multiples of 8, and that number never is.

// Work returns the position of a scope's newest entry, or, if the overlay has none, a number that is not a position and
// that changes whenever the overlay may have dropped such a position.
func (s *State) Work(scope string) uint64 {
	// In this order: a position that is dropped between the two was dropped after a swap.
	if at, _, ok := s.overlay.Load().Get(record.Working, scope); ok {
		return at
	}
	return s.swaps.Load()<<3 | 1
}

// IsWork reports whether a number that Work has returned is a position.
func IsWork(at uint64) bool { return at&7 == 0 }

// Breaks returns the number of times that entries were skipped: the set and the files of the scopes cover these
// entries, and Worked was not called with them.
func (s *State) Breaks() uint64 { return s.breaks.Load() }

// work applies an entry of working memory; mu is held.
func (s *State) work(e *wal.Entry) {
	scope := strings.Clone(e.Key[1:]) // the key is in the reader's buffer
	if s.Worked != nil {
		s.Worked(scope, e.LSN)
	}
	s.overlay.Load().Put(record.Working, scope, e.LSN, e.Delete)
	s.applied = e.LSN
}
