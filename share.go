package varve

import (
	"context"
	"sync"
)

// lineReader reads what listings name, in a goroutine of its own; read is false when that
// cannot go on, and over says why.
type lineReader interface {
	read(ctx context.Context, l listing) bool
	over() error
}

// shareBatch is how many memories a goroutine takes at once.
const shareBatch = 128

// share hands what list yields to the readers, in the caller's goroutine when there is
// one reader only.
func share[R lineReader](ctx context.Context, readers []R, list func(yield func(listing) bool) error) error {
	if len(readers) == 1 {
		r := readers[0]
		if err := list(func(l listing) bool { return r.read(ctx, l) }); err != nil {
			return err
		}
		return r.over()
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	batches := make(chan []listing, 2*len(readers))
	var wg sync.WaitGroup
	for _, r := range readers {
		wg.Go(func() {
			for batch := range batches {
				for _, l := range batch {
					if !r.read(ctx, l) {
						stop(r.over())
						break // and let go of what the others still send
					}
				}
			}
		})
	}
	batch := make([]listing, 0, shareBatch)
	err := list(func(l listing) bool {
		if batch = append(batch, l); len(batch) == shareBatch {
			batches <- batch
			batch = make([]listing, 0, shareBatch)
		}
		return ctx.Err() == nil
	})
	batches <- batch
	close(batches)
	wg.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}
