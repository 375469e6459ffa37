package purge

import (
	"context"
	"iter"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/flush"
	"github.com/varve-db/varve/internal/history"
	"github.com/varve-db/varve/internal/retention"
	"github.com/varve-db/varve/internal/scopes"
	"github.com/varve-db/varve/internal/view/vectors"
)

// Purger takes every trace of a document out of a store's folder.
type Purger struct {
	Engine     *engine.Engine
	Vectors    *vectors.Vectors
	Commits    *commit.Committer
	Flusher    *flush.Flusher
	Scopes     *scopes.Scopes
	Retention  *retention.Retention
	History    *history.History
	Containing func(ctx context.Context, member string) iter.Seq2[assembly.Assembly, error] // assemblies that have it
}
