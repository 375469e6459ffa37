package store

import (
	"context"

	"github.com/varve-db/varve/internal/flush"
)

// FlushNow makes files, index and views current. A handle without a background sweeps what has expired first.
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
