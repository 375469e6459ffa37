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

// Times finds the memories that may be within the spans of filters, without reading them, in no order; those
// of which it does not know when they happened are among them. ok is false where there are more than most.
type Times func(ctx context.Context, f *Filters, most int) (ids []string, ok bool, err error)

// timesLeast is from how many memories on the view is asked when they happened: fewer are read as fast.
const timesLeast = 10_000

// chosen are the ids among which those that pass are, in the order of listings.
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
		ids, ok, err = Timed(ctx, eng, f, 4) // of more, most are read anyway
	}
	if err != nil || !ok {
		return all // which says what is wrong
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

// listShare is of how many memories filters must leave one for them to be sorted for each page, instead of
// reading on from its beginning.
const listShare = 64

// Among are the memories, in no order and without regard to After, among which all that pass are, by what
// their documents say; ok is false where that is not known, or more than one of share of all.
func Among(ctx context.Context, eng *Engine, f *Filters, share int) (ids []string, ok bool, err error) {
	if eng.tuning.Orders == nil || f.Category == nil && f.Key == nil && len(f.Where) == 0 {
		return nil, false, nil
	}
	return eng.tuning.Orders.Among(ctx, f, share)
}

// Timed are those that may be within the spans of filters, where they are at most one in share.
func Timed(ctx context.Context, eng *Engine, f *Filters, share int) (ids []string, ok bool, err error) {
	if eng.tuning.Times == nil || f.Session != nil || f.Prefix != "" { // few are left by these
		return nil, false, nil
	}
	n, err := eng.countAll(ctx)
	if err != nil || n < timesLeast {
		return nil, false, err
	}
	return eng.tuning.Times(ctx, f, int(n)/share)
}

// placed is an id and what it is sorted by in listings.
type placed struct{ key, id string }

// listed are ids behind another one, in the order of listings.
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

// Zones is how far a time without a zone may be from what another process takes it for.
const Zones = 26 * time.Hour

// Micros are bounds in microseconds since 1970 for what may be in the span: from on, and before. A view
// has whole microseconds, and took times without a zone for those of the process that wrote it.
func Micros(s Span) (from, before int64) {
	// Beyond these years UnixMicro is not defined.
	first, last := time.Date(-290_000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(290_000, 1, 1, 0, 0, 0, 0, time.UTC)
	from, before = math.MinInt64, math.MaxInt64
	if !s.Since.IsZero() && s.Since.After(first) {
		from = last.UnixMicro()
		if s.Since.Before(last) {
			from = s.Since.Add(-Zones).UnixMicro()
		}
	}
	if !s.Until.IsZero() && s.Until.Before(last) {
		before = first.UnixMicro()
		if s.Until.After(first) {
			before = s.Until.Add(Zones).UnixMicro() + 1
		}
	}
	return from, before
}
