package engine

import (
	"context"
	"errors"

	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
)

// errAhead reports that a view includes entries of the log that the mapped index does not cover yet.
var errAhead = errors.New("the view includes more of the log than the index does")

// Between calls apply for the entries of the log between two positions. It reads log and archive, because the
// overlay has dropped the entries that the index covers.
func (eng *Engine) Between(ctx context.Context, at, to wal.Mark, apply func(*wal.Entry) error) error {
	if at.LSN >= to.LSN {
		return errAhead
	}
	for e, err := range eng.log.Past().Entries(ctx, at, to.LSN) { // the first entry must continue the chain
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
