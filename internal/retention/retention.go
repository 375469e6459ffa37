package retention

import (
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/scopes"
	"github.com/varve-db/varve/internal/view/counts"
	"github.com/varve-db/varve/internal/view/words"
)

// Retention deletes what has expired and what nobody uses, and counts accesses.
type Retention struct {
	Engine  *engine.Engine
	Commits *commit.Committer
	Counts  *counts.Counts
	Orders  *words.Orders
	Uptime  *scopes.Scopes // whose clock is that of the machine

	Expiry  Hour // of memories
	Aged    Hour // of the history
	Sweeper Sweeper
	touched touched
}

// Init makes r ready for use.
func (r *Retention) Init() {
	r.Expiry, r.Aged = Hour{r: r, name: ExpiryName}, Hour{r: r, name: AgedName}
}
