package adopt

import (
	"sync/atomic"

	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/flush"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/view/vectors"
)

// Adopter decides about files that were changed from outside the store: whether to adopt the change as a new version,
// to restore the file, or to report it.
type Adopter struct {
	engine  *engine.Engine
	vectors *vectors.Vectors
	commits *commit.Committer
	flusher *flush.Flusher

	drifts [kind.Most]atomic.Pointer[Drift] // last comparison of files and index, by kind; nil: none yet
	// by kind: modification time of the folder when its missing files were last judged, in Unix nanoseconds
	settled [kind.Most]atomic.Int64
	parking parking
	moves   moves

	resuming resuming // state of ResumeVanished
}

// Drifts returns the last comparison of the files with the index, for each kind. The element of a kind is nil before
// the first comparison of that kind.
func (ed *Adopter) Drifts() *[kind.Most]atomic.Pointer[Drift] { return &ed.drifts }

// New returns an Adopter.
func New(eng *engine.Engine, vs *vectors.Vectors, cm *commit.Committer, fl *flush.Flusher) *Adopter {
	return &Adopter{engine: eng, vectors: vs, commits: cm, flusher: fl}
}
