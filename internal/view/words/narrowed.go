package words

import (
	"context"

	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/words"
	"github.com/varve-db/varve/internal/words/narrow"
	"github.com/varve-db/varve/internal/words/order"
	"github.com/varve-db/varve/internal/words/rows"
)

// condsOf are what words say of filters.
func condsOf(f *engine.Filters) (list []narrow.Cond) {
	if f.Category != nil {
		list = append(list, narrow.Cond{Name: "category", Values: []string{*f.Category}})
	}
	if f.Key != nil {
		list = append(list, narrow.Cond{Name: "key", Values: []string{*f.Key}})
	}
	for _, c := range f.Where {
		if name, values, begins, ok := c.Texts(); ok {
			list = append(list, narrow.Cond{Name: name, Values: values, Begins: begins})
		}
	}
	return list
}

// Narrow finds the rows among which all that pass are, and how many there are of them; nil: any row may be,
// or there are fewer than few.
func (s *Snapshot) Narrow(f *engine.Filters, few int) (narrow.Rows, int, error) {
	conds := condsOf(f)
	if docs, _ := s.Set.Docs(); len(conds) == 0 || docs < int64(few) {
		return nil, 0, nil
	}
	return narrow.Of(s.Set, conds, s.Analyzer, s.From, func(p *words.Part) bool { return s.lean && p.Name == "" })
}

// narrowShare is of how many memories one may be among those that are read one by one, instead of all.
const narrowShare = 4

// few says of so many rows that reading them is less than reading all.
func (s *Snapshot) few(only narrow.Rows, n int) bool {
	docs, _ := s.Set.Docs()
	return only != nil && int64(n) <= docs/narrowShare
}

// Among implements engine.Orders.
func (o *Orders) Among(ctx context.Context, f *engine.Filters, share int) (ids []string, ok bool, err error) {
	if len(condsOf(f)) == 0 {
		return nil, false, nil
	}
	narrowed := false
	ok, err = o.with(ctx, func(s *Snapshot) error {
		ids, narrowed = nil, false
		only, n, err := s.Narrow(f, o.eng.Few)
		docs, _ := s.Set.Docs()
		if err != nil || only == nil || n > max(sessionLeast, int(docs)/share) || (f.Session != nil || f.Prefix != "") && n > sessionLeast {
			return err
		}
		narrowed = true
		c := o.chosen(f)
		return rows.Among(s.Set, only, func(r *rows.Row) (bool, error) {
			if c.walked++; c.walked%1024 == 0 && ctx.Err() != nil {
				return false, ctx.Err()
			}
			yes, _, err := c.judge(r)
			if err != nil || !yes {
				return err == nil, err
			}
			id, err := r.Named()
			ids = append(ids, string(id))
			return true, err
		})
	})
	return ids, ok && narrowed, err
}

// Times implements engine.Times.
func (o *Orders) Times(ctx context.Context, f *engine.Filters, most int) (ids []string, ok bool, err error) {
	var in []rows.Bounds
	for _, t := range []struct {
		by   order.Order
		span engine.Span
		of   func(engine.Span) bounds
	}{{order.ByTime, f.Happened, timeBounds}, {order.ByCreated, f.Created, lineBounds}, {order.ByUpdated, f.Updated, lineBounds}} {
		if t.span != (engine.Span{}) {
			b := t.of(t.span)
			in = append(in, rows.Bounds{By: t.by, From: b.from, Before: b.before})
		}
	}
	few := false
	ok, err = o.with(ctx, func(s *Snapshot) (err error) {
		ids, few, err = rows.Between(s.Set, in, most)
		return err
	})
	return ids, ok && few, err
}
