package view

import (
	"context"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/wal"
)

// FromFiles is a view as a query uses it, in an engine.Follower: it begins with the files
// where they are of the same moment as the index, and with the index otherwise.
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

// MarkOf is the moment of the log that an index is of; false where it was made without one.
func MarkOf(set *index.Set) (wal.Mark, bool) {
	sum, ok := index.Chain(set)
	return wal.Mark{LSN: set.LSN(), Sum: sum}, ok
}
