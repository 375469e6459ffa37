package view

import (
	"context"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/wal"
)

// FromFiles is a view as a query keeps it in an engine.Follower. FromFiles.Reset loads the view's files if they are as
// of the same log position as the index, and otherwise rebuilds the view from the index.
type FromFiles struct {
	View
	Folder *Folder
}

// Reset implements Fold. If the view's files are as of the log position of the index, Reset loads them; otherwise it
// rebuilds the view from the index.
func (f FromFiles) Reset(ctx context.Context, set *index.Set) error {
	if to, ok := MarkOf(set); ok {
		if at, err := f.Load(f.Folder); err == nil && at == to {
			return nil
		}
	}
	return f.View.Reset(ctx, set)
}

// MarkOf returns the log position that an index covers, and the chain hash at that position. It returns false if the
// index does not record the hash.
func MarkOf(set *index.Set) (wal.Mark, bool) {
	sum, ok := index.Chain(set)
	return wal.Mark{LSN: set.LSN(), Sum: sum}, ok
}
