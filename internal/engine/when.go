package engine

import (
	"context"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/varve-db/varve/index/table"
)

// Times is a function that finds memories by the time spans of filters without reading the memories. The result is not
// sorted, and includes memories whose time is unknown. If the result would have more than limit memories, ok is false.
type Times func(ctx context.Context, f *Filters, limit int) (ids []string, ok bool, err error)

// timesLeast is a number of memories. In a store with fewer memories Timed does not use a view, because reading all
// memories is as fast.
const timesLeast = 10_000

// chosen yields the ids of all memories that pass the filters, and possibly of others, in the order of listings. The
// caller checks each memory.
func (eng *Engine) chosen(ctx context.Context, f *Filters) iter.Seq2[string, error] {
	if f.Sort != nil {
		return func(yield func(string, error) bool) {
			for p, err := range eng.sorted(ctx, eng.kinds.Memories, *f) {
				if !yield(p.ID, err) {
					return
				}
			}
		}
	}
	all := eng.IDs(ctx, eng.kinds.Memories, *f)
	ids, ok, err := Among(ctx, eng, f, listShare)
	if err == nil && !ok && f.Happened != (Span{}) {
		ids, ok, err = Timed(ctx, eng, f, 4) // if more may match, reading all is as fast
	}
	if err != nil || !ok {
		return all // which reports the error
	}
	list, err := listed(ids, f.After)
	if err != nil {
		return all
	}
	return func(yield func(string, error) bool) {
		for _, o := range list {
			if !yield(o.id, nil) {
				return
			}
		}
	}
}

// listShare limits the number of ids that a listing takes from Among to about 1/listShare of all memories. The listing
// has to sort these ids again for each page. With more ids, reading all memories that follow the beginning of the page
// is faster.
const listShare = 64

// Among returns a list that includes all memories that pass the filters on content. The list is not sorted and ignores
// f.After. ok is false if no view has such a list, or if the list is too long: see Orders.
func Among(ctx context.Context, eng *Engine, f *Filters, share int) (ids []string, ok bool, err error) {
	if eng.tuning.Orders == nil || f.Category == nil && f.Key == nil && len(f.Where) == 0 {
		return nil, false, nil
	}
	return eng.tuning.Orders.Among(ctx, f, share)
}

// Timed returns the memories that may be within the time spans of the filters. ok is false if they are more than
// 1/share of all memories, or if finding them without a view is as fast.
func Timed(ctx context.Context, eng *Engine, f *Filters, share int) (ids []string, ok bool, err error) {
	if eng.tuning.Times == nil || f.Session != nil || f.Prefix != "" { // these filters leave few
		return nil, false, nil
	}
	n, err := eng.countAll(ctx)
	if err != nil || n < timesLeast {
		return nil, false, err
	}
	return eng.tuning.Times(ctx, f, int(n)/share)
}

// placed is a document id with the key by which listings sort it.
type placed struct{ key, id string }

// listed sorts ids in the order of listings, and returns those that come after the id after. If after is "", it
// returns all of them.
func listed(ids []string, after string) (list []placed, err error) {
	behind, err := table.EncodeKey(after)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		key, err := table.EncodeKey(id)
		if err != nil {
			return nil, err
		}
		if after == "" || key > behind {
			list = append(list, placed{key, id})
		}
	}
	slices.SortFunc(list, func(a, b placed) int { return strings.Compare(a.key, b.key) })
	return list, nil
}

// Zones is the maximum difference between the times that two processes in different time zones read from the same text
// without a zone.
const Zones = 26 * time.Hour

// Micros returns bounds for the stored times of memories whose time may be in the span s: from ≤ stored time <
// end, in microseconds since 1970. The bounds allow for two differences: a view stores whole microseconds, and a
// time without a zone was interpreted in the zone of the process that wrote the view.
func Micros(s Span) (from, end int64) {
	// Beyond these years UnixMicro is not defined.
	first, last := time.Date(-290_000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(290_000, 1, 1, 0, 0, 0, 0, time.UTC)
	from, end = math.MinInt64, math.MaxInt64
	if !s.Since.IsZero() && s.Since.After(first) {
		from = last.UnixMicro()
		if s.Since.Before(last) {
			from = s.Since.Add(-Zones).UnixMicro()
		}
	}
	if !s.Until.IsZero() && s.Until.Before(last) {
		end = first.UnixMicro()
		if s.Until.After(first) {
			end = s.Until.Add(Zones).UnixMicro() + 1
		}
	}
	return from, end
}
