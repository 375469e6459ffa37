package view

import (
	"context"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/wal"
)

// FromFiles is a view in the form in which a query follows it with an engine.Follower: its Reset loads the
// view's files if they match the index's position in the log, and rebuilds the view from the index otherwise.
type FromFiles struct {
	View
	Folder *Folder
}

// Reset implements Fold: it loads the files if they match the index, and otherwise rebuilds from the index.
func (f FromFiles) Reset(ctx context.Context, set *index.Set) error {
	if to, ok := MarkOf(set); ok {
		if at, err := f.Load(f.Folder); err == nil && at == to {
			return nil
		}
	}
	return f.View.Reset(ctx, set)
}

// MarkOf returns the log position that an index covers, with the chain hash there; false if the index records
// no hash.
func MarkOf(set *index.Set) (wal.Mark, bool) {
	sum, ok := index.Chain(set)
	return wal.Mark{LSN: set.LSN(), Sum: sum}, ok
}
