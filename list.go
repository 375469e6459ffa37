package varve

import (
	"context"
	"iter"

	"github.com/varve-db/varve/internal/engine"
)

// Memories yields the memories that pass the filters, ordered by the JSON encoding of their ids. If a memory cannot be
// read, Memories yields the error and continues. If the filters use the word index, Memories yields this error only for
// memories that may pass according to the word index. Concurrent writes may or may not be seen.
func (st *Store) Memories(ctx context.Context, filters ...Filter) iter.Seq2[Memory, error] {
	return engine.Reading(ctx, st.inner.Engine,
		func(yield func(Memory, error) bool) {
			st.inner.Engine.Each(ctx, filtersOf(ctx, st.inner.Engine, filters), yield)
		})
}

// Count returns the number of memories that pass the filters. With filters that read documents, Count leaves out the
// memories that cannot be read, and returns with the number an error that names them. Other filters need only the
// index, so Count includes these memories.
func (st *Store) Count(ctx context.Context, filters ...Filter) (int64, error) {
	if err := st.inner.Engine.BeginUse(); err != nil {
		return 0, err
	}
	defer st.inner.Engine.EndUse()
	return st.inner.Engine.Count(ctx, filtersOf(ctx, st.inner.Engine, filters))
}
