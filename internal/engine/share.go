package engine

import (
	"context"
	"sync"
)

// lineReader reads the documents of a listing in its own goroutine. If its method Read returns false, reading stops,
// and the method Over returns the reason.
type lineReader interface {
	Read(ctx context.Context, l Listing) bool
	Over() error
}

// shareBatch is the number of documents that a reading goroutine takes at once.
const shareBatch = 128

// Share distributes the listings that list yields to the readers. The readers read the documents concurrently; a single
// reader runs in the caller's goroutine. Share returns the error of list, or the reason for which a reader stopped.
func Share[R lineReader](ctx context.Context, readers []R, list func(yield func(Listing) bool) error) error {
	if len(readers) == 1 {
		r := readers[0]
		if err := list(func(l Listing) bool { return r.Read(ctx, l) }); err != nil {
			return err
		}
		return r.Over()
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	batches := make(chan []Listing, 2*len(readers))
	var wg sync.WaitGroup
	for _, r := range readers {
		wg.Go(func() {
			for batch := range batches {
				for _, l := range batch {
					if !r.Read(ctx, l) {
						stop(r.Over())
						break // the other readers' listings are dropped
					}
				}
			}
		})
	}
	batch := make([]Listing, 0, shareBatch)
	err := list(func(l Listing) bool {
		if batch = append(batch, l); len(batch) == shareBatch {
			batches <- batch
			batch = make([]Listing, 0, shareBatch)
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
