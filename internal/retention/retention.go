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
	engine  *engine.Engine
	commits *commit.Committer
	counts  *counts.Counts
	orders  *words.Orders
	uptime  *scopes.Scopes // whose clock is that of the machine

	Expiry  Hour // of memories
	aged    Hour // of the history
	sweeper Sweeper
	touched touched
}

// New returns the retention of a store. orders lists memories by age and session, ticks has the clock of the machine.
func New(eng *engine.Engine, cm *commit.Committer, cs *counts.Counts, orders *words.Orders,
	ticks *scopes.Scopes) *Retention {
	r := &Retention{engine: eng, commits: cm, counts: cs, orders: orders, uptime: ticks}
	r.Expiry, r.aged = Hour{r: r, name: ExpiryName}, Hour{r: r, name: AgedName}
	return r
}
