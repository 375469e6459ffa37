package retention

import (
	"context"
	"time"

	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/scopes"
	"github.com/varve-db/varve/internal/view/counts"
	"github.com/varve-db/varve/internal/view/words"
)

// Retention deletes expired memories and unused sessions, and counts accesses.
type Retention struct {
	engine  *engine.Engine
	commits *commit.Committer
	counts  *counts.Counts
	orders  *words.Orders
	uptime  *scopes.Scopes // has a clock that cannot be set
	others  Expirer        // further documents that expire; nil: only memories expire

	Expiry  Hour // the hour that passes before expired memories and other documents are deleted
	aged    Hour // the hour that passes before copies of the log older than history_days are deleted
	sweeper Sweeper
	touched touched
}

// Expirer is a set of expiring documents that are not memories.
type Expirer interface {
	// Expired reports whether any of these documents had expired at the time cutoff. It is cheap when called often.
	Expired(ctx context.Context, cutoff time.Time) (bool, error)
	// DeleteExpired deletes documents that had expired at the time cutoff, at most limit of them, and returns the
	// number of deleted documents.
	DeleteExpired(ctx context.Context, cutoff time.Time, limit int) (int, error)
}

// New returns the Retention of a store. orders lists memories by age and session. ticks has the clock of the
// machine. others has further documents that expire; it may be nil.
func New(eng *engine.Engine, cm *commit.Committer, cs *counts.Counts, orders *words.Orders,
	ticks *scopes.Scopes, others Expirer) *Retention {
	r := &Retention{engine: eng, commits: cm, counts: cs, orders: orders, uptime: ticks, others: others}
	r.Expiry, r.aged = Hour{r: r, name: ExpiryName}, Hour{r: r, name: AgedName}
	return r
}
