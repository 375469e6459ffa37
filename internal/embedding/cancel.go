package embedding

import (
	"context"
	"errors"
	"fmt"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/view/vectors"
)

// Cancel ends a re-embedding that has not changed the store's model yet, and returns the name of the model to
// which it would have changed.
func (em *Embedding) Cancel(ctx context.Context) (model string, err error) {
	unlock, err := em.LockComputed()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	for range engine.FindTries {
		if err := em.engine.CatchUp(ctx); err != nil {
			return "", err
		}
		m := em.vectors.Model()
		if m.Switching() {
			return "",
				fmt.Errorf("%w: too late to cancel: the store's model is already %s → run memctl reindex with that "+
					"model to complete the change, or with another model to change it again", errs.ErrConflict,
					human.Quote(m.Name))
		}
		if m.Next != "" {
			model = m.Next
			c := vectors.ChangeOfModel(&m)
			c.Next = ""
			if err := em.vectors.SetModel(ctx, m, c, 0); errors.Is(err, errs.ErrConflict) {
				continue // another process named the model meanwhile
			} else if err != nil {
				return "", err
			}
		}
		held, err := em.engine.Log().LockFlush(ctx)
		if err != nil {
			return model, err
		}
		err = em.vectors.DropComputed()
		held.Unlock()
		em.kickEmbedding()
		return model, err
	}
	return "", fmt.Errorf("%w: gave up: other processes keep changing the model", errs.ErrConflict)
}
