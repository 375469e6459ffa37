package purge

import (
	"context"
	"errors"
	"fmt"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/erase/trace"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/working"
)

// checkExists returns nil if the document, or the scope of working memory, exists now. If neither exists, the
// error matches errs.ErrNotFound. A damaged scope counts as existing.
func (p *Purger) checkExists(ctx context.Context, k *engine.Kind, id string) error {
	if k != p.engine.Kinds().Scopes {
		_, err := p.engine.Find(ctx, k, id, false)
		return err
	}
	of, err := working.ParseScope(id)
	if err != nil {
		return err
	}
	res, err := p.scopes.Do(ctx, &working.Request{Scope: of, Op: working.OpCount{}})
	if errors.Is(err, errs.ErrCorrupt) {
		return nil
	}
	if err == nil && res.Counts.Created.IsZero() {
		return fmt.Errorf("scope %s: %w", human.Quote(id), errs.ErrNotFound)
	}
	return err
}

func (p *Purger) dropScope(ctx context.Context, key string) error {
	of, err := working.ParseScope(key)
	if err != nil {
		return err
	}
	return p.scopes.DropBare(ctx, of)
}

// learnScope passes the present contents of a scope of working memory to traces, so that traces can find copies of
// them.
func (p *Purger) learnScope(ctx context.Context, key string, traces *trace.Set) error {
	of, err := working.ParseScope(key)
	if err != nil {
		return err
	}
	res, err := p.scopes.Do(ctx, &working.Request{Scope: of, Op: working.OpLoad{}})
	if errors.Is(err, errs.ErrCorrupt) {
		return nil
	}
	if err != nil {
		return err
	}
	for i := 0; i < min(len(res.Items), learnMost); i++ {
		traces.Learn(string(res.Items[i].Value))
	}
	for i := 0; i < min(len(res.Notes), learnMost); i++ {
		traces.Learn(res.Notes[i].Text)
	}
	return nil
}
