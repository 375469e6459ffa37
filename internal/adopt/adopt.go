package adopt

import (
	"sync/atomic"

	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/flush"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/view/vectors"
)

// Adopter examines files that were changed from outside the store, and adopts or restores them.
type Adopter struct {
	engine  *engine.Engine
	vectors *vectors.Vectors
	commits *commit.Committer
	flusher *flush.Flusher

	drifts [kind.Most]atomic.Pointer[Drift] // results of the last comparison, by kind
	// times of the folders, by kind, when their missing files were examined, in Unix nanoseconds
	settled [kind.Most]atomic.Int64
	parking parking
	moves   moves
}

// Drifts returns the last comparison of the files of each kind with the index; an element is nil before the first.
func (ed *Adopter) Drifts() *[kind.Most]atomic.Pointer[Drift] { return &ed.drifts }

// New returns an Adopter.
func New(eng *engine.Engine, vs *vectors.Vectors, cm *commit.Committer, fl *flush.Flusher) *Adopter {
	return &Adopter{engine: eng, vectors: vs, commits: cm, flusher: fl}
}
