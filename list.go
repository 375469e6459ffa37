package varve

import (
	"context"
	"iter"

	"github.com/varve-db/varve/internal/engine"
)

// Memories yields the memories that pass the filters, in the order of their ids as JSON writes
// them. A memory that cannot be read yields its error, and the next ones follow. Concurrent writes
// may or may not be seen.
func (st *Store) Memories(ctx context.Context, filters ...Filter) iter.Seq2[Memory, error] {
	return engine.Reading(ctx, st.engine, func(yield func(Memory, error) bool) { st.engine.Each(ctx, filtersOf(filters), yield) })
}

// Count returns the number of memories that pass the filters.
func (st *Store) Count(ctx context.Context, filters ...Filter) (int64, error) {
	if err := st.engine.Begun(); err != nil {
		return 0, err
	}
	defer st.engine.Ended()
	if err := st.engine.Sight(ctx); err != nil {
		return 0, err
	}
	f := filtersOf(filters)
	if f.All() {
		return st.engine.CountAll(ctx)
	}
	var n int64
	if f.Reads() {
		var first error
		st.engine.Each(ctx, f, func(_ Memory, err error) bool {
			if err == nil {
				n++
			} else if first == nil {
				first = err
			}
			return true
		})
		return n, first
	}
	for _, err := range st.engine.IDs(ctx, st.engine.Kinds.Memories, f) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
