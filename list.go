package varve

import (
	"context"
	"iter"
)

// Memories yields the memories that pass the filters, by id as JSON writes it.
// One that cannot be read yields its error and the rest goes on. What is
// written meanwhile is seen or not.
func (st *Store) Memories(ctx context.Context, filters ...Filter) iter.Seq2[Memory, error] {
	return reading(ctx, st.engine, func(yield func(Memory, error) bool) { st.engine.each(ctx, filtersOf(filters), yield) })
}

// Count is the number of memories that pass the filters.
func (st *Store) Count(ctx context.Context, filters ...Filter) (int64, error) {
	if err := st.engine.begun(); err != nil {
		return 0, err
	}
	defer st.engine.ended()
	if err := st.engine.sight(ctx); err != nil {
		return 0, err
	}
	f := filtersOf(filters)
	if f.all() {
		return st.engine.countAll(ctx)
	}
	var n int64
	if f.reads() {
		var first error
		st.engine.each(ctx, f, func(_ Memory, err error) bool {
			if err == nil {
				n++
			} else if first == nil {
				first = err
			}
			return true
		})
		return n, first
	}
	for _, err := range st.engine.ids(ctx, st.engine.kinds.memories, f) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
