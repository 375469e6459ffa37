package words

import (
	"context"

	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/words"
	"github.com/varve-db/varve/internal/words/narrow"
	"github.com/varve-db/varve/internal/words/rows"
)

// condsOf returns those filter conditions that the word index can decide.
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

// Narrow returns a set of rows of the word index that includes all rows which pass the filters, and the number of
// live rows in the set. The set is nil if the index cannot exclude any row, or if the index has fewer than minDocs
// documents.
func (s *Snapshot) Narrow(f *engine.Filters, minDocs int) (narrow.Rows, int, error) {
	conds := condsOf(f)
	if docs, _ := s.Set.Docs(); len(conds) == 0 || docs < int64(minDocs) {
		return nil, 0, nil
	}
	return narrow.Of(s.Set, conds, s.Analyzer, s.From, func(p *words.Part) bool { return s.lean && p.Name == "" })
}

// narrowShare limits reading memories one by one: if more than 1 in narrowShare memories would have to be read, all
// memories are scanned instead.
const narrowShare = 4

// few reports whether it is cheaper to read the n rows in subset than to scan all rows. It returns false if subset
// is nil.
func (s *Snapshot) few(subset narrow.Rows, n int) bool {
	docs, _ := s.Set.Docs()
	return subset != nil && int64(n) <= docs/narrowShare
}

// Among implements engine.Orders. It returns the ids of memories that include every memory that passes the filters on
// content; some of the memories may not pass. ok is false if the word index has no usable files, cannot decide any of
// the filters, or would select too many memories. With a filter by session or prefix, too many are more than
// sessionLeast; otherwise more than the greater of sessionLeast and 1 in share of all memories.
func (o *Orders) Among(ctx context.Context, f *engine.Filters, share int) (ids []string, ok bool, err error) {
	if len(condsOf(f)) == 0 {
		return nil, false, nil
	}
	narrowed := false
	ok, err = o.withSnapshot(ctx, func(s *Snapshot) error {
		ids, narrowed = nil, false
		only, n, err := s.Narrow(f, o.eng.Tune().Few)
		docs, _ := s.Set.Docs()
		if err != nil || only == nil || n > max(sessionLeast, int(docs)/share) ||
			(f.Session != nil || f.Prefix != "") && n > sessionLeast {
			return err
		}
		narrowed = true
		ids, _, err = o.passing(ctx, s, only, f, int(docs))
		return err
	})
	return ids, ok && narrowed, err
}

// Times implements engine.Times: it returns the memories whose times may be within the time spans of the filters.
// If there are more than limit such memories, ok is false.
func (o *Orders) Times(ctx context.Context, f *engine.Filters, limit int) (ids []string, ok bool, err error) {
	few := false
	ok, err = o.withSnapshot(ctx, func(s *Snapshot) (err error) {
		ids, few, err = o.passing(ctx, s, nil, f, limit)
		return err
	})
	return ids, ok && few, err
}

// passing returns the ids of the rows in subset that pass the filters, or that may pass because a row does not
// have the data to decide. If subset is nil, passing examines all rows. If more than limit rows pass, complete is
// false and the list is incomplete.
func (o *Orders) passing(ctx context.Context, s *Snapshot, subset narrow.Rows, f *engine.Filters,
	limit int) (ids []string, complete bool, err error) {
	c := o.chosen(f)
	complete = true
	err = rows.Among(s.Set, subset, func(r *rows.Row) (bool, error) {
		if c.walked++; c.walked%1024 == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
		yes, _, err := c.judge(r)
		if err != nil || !yes {
			return err == nil, err
		}
		if complete = len(ids) < limit; !complete {
			return false, nil
		}
		id, err := r.Named()
		ids = append(ids, string(id))
		return true, err
	})
	return ids, complete, err
}
