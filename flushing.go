package varve

import (
	"context"

	"github.com/varve-db/varve/internal/flush"
)

// Flush makes the files and the index durable up to what was committed before
// the call, by whatever process. What it costs depends on what has changed, not
// on how much there is: the index may be left in two files, see Admin.Compact.
func (st *Store) Flush(ctx context.Context) error { return st.flushNow(ctx, flush.MergeFlush) }

// Compact is Store.Flush, and leaves all of the index in memory_index.json, for those
// who read it with other tools. It writes the whole index.
func (ad Admin) Compact(ctx context.Context) error { return ad.st.flushNow(ctx, flush.MergeAlways) }

func (st *Store) flushNow(ctx context.Context, m flush.Merge) error {
	if err := st.engine.Begun(); err != nil {
		return err
	}
	defer st.engine.Ended()
	if err := st.engine.Writable(); err != nil {
		return err
	}
	if !st.background() {
		st.kept.SweepUp(ctx)
	}
	return st.flusher.Flush(ctx, m)
}
