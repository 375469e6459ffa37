package varve

import (
	"context"
	"iter"

	"github.com/varve-db/varve/internal/engine"
)

// Memories yields the memories that pass the filters, in the order of their ids as JSON encodes them. For a memory that
// cannot be read it yields the error, and continues; if the filters use the index of words, it does so only for
// memories that may pass according to that index. Concurrent writes may or may not be seen.
func (st *Store) Memories(ctx context.Context, filters ...Filter) iter.Seq2[Memory, error] {
	return engine.Reading(ctx, st.inner.Engine,
		func(yield func(Memory, error) bool) {
			st.inner.Engine.Each(ctx, filtersOf(ctx, st.inner.Engine, filters), yield)
		})
}

// Count returns the number of memories that pass the filters. Filters that read documents do not count memories that
// cannot be read: then Count returns an error that names them, with the number. Other filters count them, by their
// lines in the index.
func (st *Store) Count(ctx context.Context, filters ...Filter) (int64, error) {
	if err := st.inner.Engine.BeginUse(); err != nil {
		return 0, err
	}
	defer st.inner.Engine.EndUse()
	return st.inner.Engine.Count(ctx, filtersOf(ctx, st.inner.Engine, filters))
}
