package state

import (
	"fmt"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/kind"
)

// Agrees returns an error if an index belongs to an earlier log of this folder. That is so if the index covers more
// than this log, which ends at the position end, or if the chain hash in the index differs from that of this log. The
// function chain returns the chain hash of this log at a position, and false if it is unknown.
func Agrees(set *index.Set, end uint64, chain func(uint64) (uint64, bool)) error {
	if set.Base() == nil {
		return nil
	}
	if set.LSN() > end {
		return &errs.CorruptionError{Path: index.BaseName, Offset: -1,
			Err: fmt.Errorf("the index covers the log up to position %d, but the log ends at position %d", set.LSN(),
				end)}
	}
	was, ok := index.Chain(set)
	if is, known := chain(set.LSN()); ok && known && is != was {
		return fmt.Errorf("%s was written for a log that differs from this one before position %d", index.BaseName,
			set.LSN())
	}
	return nil
}

// Rebuilt reports whether the index set was made from the document files. All lines of such a set have the version
// that a rebuild assigns, which is the position of no frame. The set may contain changes from after its own position.
// A store can have such an index when it is opened, because the process that rebuilt the index was killed before it
// wrote the next index.
func Rebuilt(set *index.Set) bool {
	for _, k := range kind.Kinds {
		for e, err := range set.Range(k.Section, index.Span{}) {
			if err != nil {
				return false
			}
			if line, err := index.ParseLine(e.Value); err == nil && line.Version == set.LSN()-1 {
				return true
			}
			break
		}
	}
	return false
}
