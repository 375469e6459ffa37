package varve

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/varve-db/varve/internal/text"
)

// searchText goes over the contents once, and a second time where that was not
// enough; see package text.
func (st *Store) searchText(ctx context.Context, q *text.Query, f *filters, n int, least float64, bad *unreadable) ([]text.Hit, error) {
	collectors := make([]*text.Collector, st.scanners())
	for i := range collectors {
		collectors[i] = q.NewCollector(n)
	}
	err := st.scan(ctx, q, f, bad, func(i int, id string, c *text.Counter) { collectors[i].Add(id, c) })
	if err != nil {
		return nil, err
	}
	all := collectors[0]
	for _, o := range collectors[1:] {
		all.Merge(o)
	}
	score := q.Scorer(all.Numbers)
	if top, ok := all.Top(score, least); ok {
		return top.Hits(), nil
	}
	tops := make([]*text.Top, len(collectors))
	for i := range tops {
		tops[i] = text.NewTop(n, least)
	}
	*bad = unreadable{} // they are met again
	err = st.scan(ctx, q, f, bad, func(i int, id string, c *text.Counter) {
		if c.Found {
			tops[i].Add(text.Hit{ID: id, Score: score.Score(c.Counts, c.Length)})
		}
	})
	for _, o := range tops[1:] {
		tops[0].Merge(o)
	}
	return tops[0].Hits(), err
}

// scanners is how many goroutines read contents.
func (st *Store) scanners() int {
	if st.o.System.Inline {
		return 1
	}
	return min(runtime.GOMAXPROCS(0), 16)
}

// scanBatch is how many memories a goroutine takes at once.
const scanBatch = 128

// scan counts the words of every memory that passes the filters, in scanners()
// goroutines; add is told by which. Memories that cannot be read go to bad.
func (st *Store) scan(ctx context.Context, q *text.Query, f *filters, bad *unreadable, add func(i int, id string, c *text.Counter)) error {
	readers := make([]*contentReader, st.scanners())
	for i := range readers {
		c := q.NewCounter()
		readers[i] = &contentReader{st: st, f: f, take: func(id string, content []byte) {
			c.Count(content)
			add(i, id, c)
		}}
	}
	var unread []idError
	err := st.share(ctx, readers, func(yield func(listing) bool) error {
		for l, err := range st.lines(ctx, st.memories, *f) {
			switch {
			case errors.Is(err, ErrClosed), err != nil && ctx.Err() != nil:
				return err
			case err != nil && len(unread) == mostUnreadable:
				bad.more++
			case err != nil:
				unread = append(unread, idError{l.id, err})
			case !yield(l):
				return nil
			}
		}
		return nil
	})
	for _, r := range readers {
		unread = append(unread, r.unread...)
		bad.more += r.more
	}
	slices.SortStableFunc(unread, func(a, b idError) int { return strings.Compare(a.id, b.id) })
	for _, u := range unread {
		bad.add(u.err)
	}
	return err
}

// share hands what list yields to the readers, in the caller's goroutine when
// there is one reader only.
func (st *Store) share(ctx context.Context, readers []*contentReader, list func(yield func(listing) bool) error) error {
	if len(readers) == 1 {
		r := readers[0]
		if err := list(func(l listing) bool { return r.read(ctx, l) }); err != nil {
			return err
		}
		return r.err
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
						stop(r.err)
						break // and let go of what the others still send
					}
				}
			}
		})
	}
	batch := make([]listing, 0, scanBatch)
	err := list(func(l listing) bool {
		if batch = append(batch, l); len(batch) == scanBatch {
			batches <- batch
			batch = make([]listing, 0, scanBatch)
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
