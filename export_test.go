package varve

import (
	"context"

	"github.com/varve-db/varve/internal/copy/backup"
	"github.com/varve-db/varve/internal/flush"
	"github.com/varve-db/varve/internal/view"
	"github.com/varve-db/varve/wal"
)

// What tests of package varve_test need and the package does not export.

// Fill sets the defaults of options that are not set.
func (o *Options) Fill() { o.fill() }

// Copied returns what a backup of the store is made from.
func (st *Store) Copied(ctx context.Context, unflushed bool) (backup.Source, error) {
	return st.copied(ctx, unflushed)
}

// Source returns what verification reads.
func (st *Store) Source() view.Source { return st.source() }

// RebuildVectors writes the vector files from the documents, as a write does that finds them damaged.
func (st *Store) RebuildVectors(ctx context.Context) error {
	return st.rebuildVectors(ctx, flush.ErrFound)
}

// RebuildAssembly writes an assembly as a repair does that has counted its members.
func (st *Store) RebuildAssembly(ctx context.Context, id string, version wal.LSN) (wal.LSN, error) {
	return repairStore{st}.RebuildAssembly(ctx, nil, id, version, nil)
}
