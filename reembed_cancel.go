package varve

import (
	"context"
	"errors"
	"fmt"

	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/view/vectors"
)

// CancelReembed calls off a re-embedding that was begun, by whichever process, and that
// has not changed the store's model yet: what it computed is removed, and the vectors
// that serve go on to. It says which model would have come, "" when none was told. One
// that has changed the model can only go on: ErrConflict. While it runs: ErrLocked.
func (st *Store) CancelReembed(ctx context.Context) (model string, err error) {
	if err := st.engine.Begun(); err != nil {
		return "", err
	}
	defer st.engine.Ended()
	if err := st.engine.Writable(); err != nil {
		return "", err
	}
	unlock, err := st.lockComputed()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	for range engine.FindTries {
		if err := st.engine.Sight(ctx); err != nil {
			return "", err
		}
		m := st.vectors.Model()
		if m.Switching() {
			return "", fmt.Errorf("%w: the store has changed to %s, and its memories are being rewritten: run memctl reindex with that model, which ends it, or with another, which the store changes to then", errs.ErrConflict, errs.Quote(m.Name))
		}
		if m.Next != "" {
			model = m.Next
			c := vectors.ChangeOfModel(&m)
			c.Next = ""
			if err := st.vectors.SetModel(ctx, m, c, 0); errors.Is(err, errs.ErrConflict) {
				continue // somebody named the model meanwhile
			} else if err != nil {
				return "", err
			}
		}
		if err := st.engine.Log.LockFlush(ctx); err != nil {
			return model, err
		}
		err := st.vectors.DropComputed()
		st.engine.Log.UnlockFlush()
		st.kickEmbedding()
		return model, err
	}
	return "", fmt.Errorf("%w: the model is changed by others all the time", errs.ErrConflict)
}
