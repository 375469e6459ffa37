// Package rebuild rebuilds the index if it is missing or cannot be trusted.
//
// It is built from the newest older index that is valid, which is the base under a damaged delta or a
// backup, and the entries of the log since then (from.go); that keeps every version. If no older
// index is valid, it is built from the files, which have no versions (files.go); they get the versions that log, index
// or backups still have (versions.go).
//
// From is for a store that is being opened, when no other process has it open: it takes no wal.Held. Again
// replaces the index of a store in use, for the holder of flush.lock.
package rebuild

import (
	"github.com/varve-db/varve/internal/copy/backup"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/view/vectors"
	"github.com/varve-db/varve/internal/views"
)

// Maker builds the index of a store when the present one is missing or damaged.
type Maker struct {
	engine   *engine.Engine
	vectors  *vectors.Vectors
	views    *views.Views
	restored *backup.Restored // what is known of a store that is being restored; nil: none is
}

// New returns a Maker for a store. restored is nil if the store is not being restored.
func New(eng *engine.Engine, vs *vectors.Vectors, all *views.Views, restored *backup.Restored) *Maker {
	return &Maker{engine: eng, vectors: vs, views: all, restored: restored}
}
