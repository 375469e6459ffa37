package search

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/text"
)

// searchText goes over the contents once, and a second time where that was not
// enough; see package text.
func (s *Search) searchText(ctx context.Context, q *text.Query, f *engine.Filters, n int, least float64, bad *unreadable) ([]text.Hit, error) {
	collectors := make([]*text.Collector, s.Scanners())
	for i := range collectors {
		collectors[i] = q.NewCollector(n)
	}
	err := s.scan(ctx, q, f, bad, func(i int, id string, c *text.Counter) { collectors[i].Add(id, c) })
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
	err = s.scan(ctx, q, f, bad, func(i int, id string, c *text.Counter) {
		if c.Found {
			tops[i].Add(text.Hit{ID: id, Score: score.Score(c.Counts, c.Length)})
		}
	})
	for _, o := range tops[1:] {
		tops[0].Merge(o)
	}
	return tops[0].Hits(), err
}

// Scanners is how many goroutines read contents.
func (s *Search) Scanners() int {
	if s.Engine.Env.System.Inline {
		return 1
	}
	return min(runtime.GOMAXPROCS(0), 16)
}

// scan counts the words of every memory that passes the filters, in scanners()
// goroutines; add is told by which. Memories that cannot be read go to bad.
func (s *Search) scan(ctx context.Context, q *text.Query, f *engine.Filters, bad *unreadable, add func(i int, id string, c *text.Counter)) error {
	readers := make([]*contentReader, s.Scanners())
	for i := range readers {
		c := q.NewCounter()
		readers[i] = &contentReader{s: s, f: f, take: func(id string, content []byte) {
			c.Count(content)
			add(i, id, c)
		}}
	}
	var unread []idError
	err := engine.Share(ctx, readers, func(yield func(engine.Listing) bool) error {
		for l, err := range s.Engine.Lines(ctx, s.Engine.Kinds.Memories, *f) {
			switch {
			case errors.Is(err, errs.ErrClosed), err != nil && ctx.Err() != nil:
				return err
			case err != nil && len(unread) == MostUnreadable:
				bad.more++
			case err != nil:
				unread = append(unread, idError{l.ID, err})
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
