package varve

import (
	"context"

	"github.com/varve-db/varve/internal/flush"
)

// Flush writes everything that any process committed before the call, durably to the files and the index. Its cost
// depends on what has changed, not on the size of the store: the index may remain in two files, see Admin.Compact.
func (st *Store) Flush(ctx context.Context) error { return st.inner.FlushNow(ctx, flush.MergeFlush) }

// Compact does what Store.Flush does, and also writes the whole index to memory_index.json, for other tools that read
// this file.
func (ad Admin) Compact(ctx context.Context) error {
	return ad.st.inner.FlushNow(ctx, flush.MergeAlways)
}
