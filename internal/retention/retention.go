package retention

import (
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/view/counts"
	"github.com/varve-db/varve/internal/view/scopes"
	"github.com/varve-db/varve/internal/view/words"
)

// Retention deletes what has expired and what nobody uses, and counts accesses.
type Retention struct {
	Engine  *engine.Engine
	Commits *commit.Committer
	Counts  *counts.Counts
	Orders  *words.Orders
	Uptime  *scopes.Scopes // whose clock is that of the machine

	Sweeper Sweeper
	touched touched
}
