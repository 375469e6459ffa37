package view

import (
	"context"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/wal"
)

// FromFiles is a view as a query uses it, in an engine.Follower: its Reset loads the files if they match the index's
// position in the log, and rebuilds from the index otherwise.
type FromFiles struct {
	View
	Folder *Folder
}

// Reset implements Fold.
func (f FromFiles) Reset(ctx context.Context, set *index.Set) error {
	if to, ok := MarkOf(set); ok {
		if at, err := f.Load(f.Folder); err == nil && at == to {
			return nil
		}
	}
	return f.View.Reset(ctx, set)
}

// MarkOf returns the log position, with its checksum, that an index covers; false if the index records no checksum.
func MarkOf(set *index.Set) (wal.Mark, bool) {
	sum, ok := index.Chain(set)
	return wal.Mark{LSN: set.LSN(), Sum: sum}, ok
}
