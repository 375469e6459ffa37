package varve

import (
	"context"

	"github.com/varve-db/varve/internal/flush"
)

// Flush writes what was committed before the call, by any process, durably to the files and the
// index. Its cost depends on what has changed, not on the size of the store: the index may remain
// in two files, see Admin.Compact.
func (st *Store) Flush(ctx context.Context) error { return st.flushNow(ctx, flush.MergeFlush) }

// Compact is Store.Flush, and also writes the whole index to memory_index.json, for other tools
// that read it.
func (ad Admin) Compact(ctx context.Context) error { return ad.st.flushNow(ctx, flush.MergeAlways) }

func (st *Store) flushNow(ctx context.Context, m flush.Merge) error {
	if err := st.inner.Engine.BeginUse(); err != nil {
		return err
	}
	defer st.inner.Engine.EndUse()
	if err := st.inner.Engine.Writable(); err != nil {
		return err
	}
	if !st.inner.Background() {
		st.inner.Retention.SweepUp(ctx)
	}
	return st.inner.Flusher.Flush(ctx, m)
}
