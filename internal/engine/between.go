package engine

import (
	"context"
	"errors"

	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
)

// errAhead says that what a view has is of a moment that the index has not come to.
var errAhead = errors.New("it is ahead of the index")

// Between applies what the log has between two moments. Log and archive are read, for the overlay has
// let go of what the index has taken in.
func (eng *Engine) Between(ctx context.Context, at, to wal.Mark, apply func(*wal.Entry) error) error {
	if at.LSN >= to.LSN {
		return errAhead
	}
	for e, err := range eng.log.Past().Entries(ctx, at, to.LSN) { // the first must follow the chain
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
