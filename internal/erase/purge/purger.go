package purge

import (
	"sync/atomic"

	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/flush"
	"github.com/varve-db/varve/internal/history"
	"github.com/varve-db/varve/internal/retention"
	"github.com/varve-db/varve/internal/scopes"
	"github.com/varve-db/varve/internal/view/vectors"
)

// Purger removes every trace of a document from a store's folder.
type Purger struct {
	engine    *engine.Engine
	vectors   *vectors.Vectors
	commits   *commit.Committer
	flusher   *flush.Flusher
	scopes    *scopes.Scopes
	retention *retention.Retention
	history   *history.History

	tried atomic.Int64 // time of the last attempt of OverwriteDue, Unix nanoseconds; 0: never
	pause atomic.Int64 // time.Duration until the next attempt of OverwriteDue; 0: the last one succeeded
}

// New returns the Purger of a store.
func New(eng *engine.Engine, vs *vectors.Vectors, cm *commit.Committer, fl *flush.Flusher, ws *scopes.Scopes,
	r *retention.Retention,
	h *history.History) *Purger {
	return &Purger{engine: eng, vectors: vs, commits: cm, flusher: fl, scopes: ws, retention: r, history: h}
}
