package store

import (
	"context"

	"github.com/varve-db/varve/internal/flush"
)

// FlushNow brings files, index and views up to date. A handle without background goroutines first sweeps
// expired memories.
func (st *Store) FlushNow(ctx context.Context, m flush.Merge) error {
	if err := st.Engine.BeginUse(); err != nil {
		return err
	}
	defer st.Engine.EndUse()
	if err := st.Engine.Writable(); err != nil {
		return err
	}
	if !st.Background() {
		st.Retention.SweepUp(ctx)
	}
	return st.Flusher.Flush(ctx, m)
}
