package varve

import (
	"context"
	"iter"

	"github.com/varve-db/varve/internal/engine"
)

// Memories yields the memories that pass the filters, in the order of their ids as JSON writes
// them. A memory that cannot be read yields its error, and the next ones follow; where the filters ask
// the index of words, only if it may pass by that. Concurrent writes may or may not be seen.
func (st *Store) Memories(ctx context.Context, filters ...Filter) iter.Seq2[Memory, error] {
	return engine.Reading(ctx, st.inner.Engine,
		func(yield func(Memory, error) bool) {
			st.inner.Engine.Each(ctx, filtersOf(ctx, st.inner.Engine, filters), yield)
		})
}

// Count returns the number of memories that pass the filters. Filters that read documents leave out those that
// cannot be read: the error names them beside the number. Others count them, as the index has them.
func (st *Store) Count(ctx context.Context, filters ...Filter) (int64, error) {
	if err := st.inner.Engine.BeginUse(); err != nil {
		return 0, err
	}
	defer st.inner.Engine.EndUse()
	return st.inner.Engine.Count(ctx, filtersOf(ctx, st.inner.Engine, filters))
}
