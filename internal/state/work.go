package state

import (
	"strings"

	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/wal"
)

// Working memory is in no index: a scope's file, and the entries that the log has
// of it, are all there is. The overlay says where the newest of these is. What a
// flush has to keep for that is one thing: before a position falls below spilled,
// and with it out of the overlay and the log, the scope's file has it, durably.
//
// So a scope has a version as long as it changed since the index was written; for
// all others there is one number, which is another one after every swap. A
// precondition on it fails when the scope changed, and also when it did not but the index was
// replaced: a writer that fails looks again. Positions are multiples of 8, so that number is none.

// Work returns the position of a scope's newest entry, or, if there is none, a number that is no position and that
// changes whenever the overlay may have dropped such a position.
func (s *State) Work(scope string) uint64 {
	// In this order: what is dropped between the two is dropped behind a swap.
	if at, _, ok := s.overlay.Load().Get(record.Working, scope); ok {
		return at
	}
	return s.swaps.Load()<<3 | 1
}

// IsWork reports whether a number that Work has given is a position.
func IsWork(at uint64) bool { return at&7 == 0 }

// Breaks counts how often entries were skipped: they are in a set, and in the files
// of the scopes, and Worked was not told of them.
func (s *State) Breaks() uint64 { return s.breaks.Load() }

// work takes an entry of working memory in; mu is held.
func (s *State) work(e *wal.Entry) {
	scope := strings.Clone(e.Key[1:]) // the key lies in the reader's buffer
	if s.Worked != nil {
		s.Worked(scope, e.LSN)
	}
	s.overlay.Load().Put(record.Working, scope, e.LSN, e.Delete)
	s.applied = e.LSN
}
