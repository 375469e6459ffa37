package adopt

import (
	"sync/atomic"

	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/flush"
	"github.com/varve-db/varve/internal/view/vectors"
)

// Adopter judges the files that others have changed.
type Adopter struct {
	Engine  *engine.Engine
	Vectors *vectors.Vectors
	Commits *commit.Committer
	Flusher *flush.Flusher

	Drifts  [2]atomic.Pointer[Drift] // by kind
	settled [2]atomic.Int64          // by kind: time of the folder of which the missing files were judged, Unix nanoseconds
	parking parking
}
