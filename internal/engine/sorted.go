package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/words/order"
	"github.com/varve-db/varve/memstore"
)

// Orders answers filters for all memories from views, without reading the index. If a method returns false for ok, no
// view has the answer, and the caller reads the index.
type Orders interface {
	// Page returns at most limit memories whose index lines pass f, in the order s, after the place s.At. stop is the
	// place at which Page stopped, or nil if there are no more memories.
	Page(ctx context.Context, f *Filters, s *memstore.Order, limit int) (ids []memstore.Place, stop *memstore.Place,
		ok bool, err error)
	// Count returns the number of memories that pass the filters.
	Count(ctx context.Context, f *Filters) (n int64, ok bool, err error)
	// Among returns a list that includes all memories that pass the filters on content, in no order and
	// without regard to After. If the list would have thousands of memories and more than 1/share of all memories, ok
	// is false.
	Among(ctx context.Context, f *Filters, share int) (ids []string, ok bool, err error)
}

// fewMemories is a number of memories. In a store with fewer memories, reading all of them is as fast as finding some
// of them.
const fewMemories = 1024

// SortKey returns the value of an index line by which the order key sorts. It returns 0 for an order for which an
// index line has no value.
func SortKey(key memstore.OrderKey, e *index.Entry) int64 {
	switch key {
	case memstore.OrderCreated:
		return e.CreatedAt.UnixMicro()
	case memstore.OrderUpdated:
		return e.UpdatedAt.UnixMicro()
	case memstore.OrderScore:
		return order.ScoreKey(e.Score)
	case memstore.OrderSize:
		return e.Size
	}
	return 0
}

// The numbers of memories that a sorted listing reads from a view in one call of Orders.Page: in the first call, and at
// most.
const (
	pageFirst = 64
	pageMost  = 4096
)

// sorted yields the documents whose index lines pass the filters, in the order of f.Sort. It updates f.Sort to the last
// place yielded.
func (eng *Engine) sorted(ctx context.Context, k *Kind, f Filters) iter.Seq2[memstore.Place, error] {
	return Whole(ctx, func(yield func(memstore.Place, error) bool) {
		s := f.Sort
		s.Start()
		give := func(p memstore.Place) bool {
			s.Move(p)
			return !f.Reads() && s.Skips() || yield(p, nil)
		}
		for most := pageFirst; eng.tuning.Orders != nil && k == eng.kinds.Memories &&
			s.By != memstore.OrderID; most = min(2*most, pageMost) {
			list, at, ok, err := eng.tuning.Orders.Page(ctx, &f, s, most+min(s.Skip, pageMost))
			if err != nil {
				yield(memstore.Place{}, err)
				return
			}
			if !ok {
				break
			}
			for _, p := range list {
				if !give(p) {
					return
				}
			}
			if at == nil || ctx.Err() != nil {
				return
			}
			s.Move(*at)
		}
		list, more := eng.sortAll(ctx, k, &f, yield)
		for i := 0; more && i < len(list); i++ {
			if !give(list[i]) {
				return
			}
		}
	})
}

// sortAll returns the places of the documents whose index lines pass f, sorted in an order that no view has. If the
// order is by the timestamps of memories, which index lines do not contain, sortAll reads the memories. It passes
// errors to yield. more is false if yield returned false or ctx ended.
func (eng *Engine) sortAll(ctx context.Context, k *Kind, f *Filters,
	yield func(memstore.Place, error) bool) (list []memstore.Place, more bool) {
	s, all := f.Sort, *f
	all.Sort, more = nil, true
	take := func(id string, key int64, err error) bool {
		p := memstore.Place{Key: key, ID: id}
		switch {
		case err != nil:
			more = yield(p, err)
		case s.At == nil || s.Down && p.Compare(*s.At) < 0 || !s.Down && p.Compare(*s.At) > 0:
			list = append(list, p)
		}
		return more && ctx.Err() == nil
	}
	if s.By == memstore.OrderTimestamp && k == eng.kinds.Memories {
		eng.Each(ctx, all, func(m memstore.Memory, err error) bool { return take(m.ID, m.Timestamp.UnixMicro(), err) })
	} else {
		for l, err := range eng.Lines(ctx, k, all) {
			if !take(l.ID, SortKey(s.By, &l.Line), err) {
				break
			}
		}
	}
	if ctx.Err() != nil {
		return nil, false // an incomplete list cannot be sorted
	}
	slices.SortFunc(list, func(a, b memstore.Place) int {
		if s.Down {
			return b.Compare(a)
		}
		return a.Compare(b)
	})
	return list, more
}

// sortedLines yields the index lines of the documents that pass the filters, in the order of f.Sort.
func (eng *Engine) sortedLines(ctx context.Context, k *Kind, f Filters) iter.Seq2[Listing, error] {
	return func(yield func(Listing, error) bool) {
		for p, err := range eng.sorted(ctx, k, f) {
			if err != nil {
				if !yield(Listing{}, err) {
					return
				}
				continue
			}
			l, ok, err := eng.lineNow(ctx, k, p.ID, &f)
			if (ok || err != nil) && !yield(l, err) {
				return
			}
		}
	}
}

// lineNow returns the current index line of a document. It returns false for ok if the document does not exist or does
// not pass the filters.
func (eng *Engine) lineNow(ctx context.Context, k *Kind, id string, f *Filters) (l Listing, ok bool, err error) {
	v, err := eng.Find(ctx, k, id, false)
	switch {
	case errors.Is(err, errs.ErrNotFound):
		return Listing{}, false, nil
	case err != nil:
		return Listing{}, false, fmt.Errorf("%s %s: %w", k.Noun, human.Quote(id), err)
	}
	return Listing{ID: id, Line: v.Line}, f.Line(id, &v.Line, eng.env.Clock()), nil
}

// Passes reports whether a memory passes the filters, both by its index line and by its content.
func Passes(ctx context.Context, eng *Engine, f *Filters, id string) (bool, error) {
	l, ok, err := eng.lineNow(ctx, eng.kinds.Memories, id, f)
	if err != nil || !ok || !f.Reads() {
		return ok, err
	}
	v, err := eng.Load(ctx, eng.kinds.Memories, l.ID)
	if errors.Is(err, errs.ErrNotFound) || err == nil && v.Stale(f, id, eng.env.Clock()) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("memory %s: %w", human.Quote(id), err)
	}
	m, err := eng.Decode(id, v)
	return err == nil && f.Memory(&m), err
}

// Truncated returns a time as orders and sums use it: in whole microseconds.
func Truncated(t time.Time) time.Time { return time.UnixMicro(t.UnixMicro()).UTC() }
