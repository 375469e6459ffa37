package engine

import (
	"context"
	"errors"

	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
)

// errAhead reports that a view includes entries of the log that the mapped index does not cover yet.
var errAhead = errors.New("the view includes more of the log than the index does")

// Between calls apply for the entries of the log in [from, to). It omits entries whose content is invalid. It
// reads log and archive, because the overlay has dropped the entries that the index covers. If from is not before
// to, the error is errAhead.
func (eng *Engine) Between(ctx context.Context, from, to wal.Mark, apply func(*wal.Entry) error) error {
	if from.LSN >= to.LSN {
		return errAhead
	}
	for e, err := range eng.log.Past().Entries(ctx, from, to.LSN) { // the first entry must continue the chain
		if err != nil {
			return err
		}
		if _, err := state.Check(&e); errors.Is(err, state.ErrEntry) {
			continue
		}
		if err := apply(&e); err != nil {
			return err
		}
	}
	return nil
}
