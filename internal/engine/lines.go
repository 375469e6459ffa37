package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sort"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/index/table"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/memstore"
)

// Reading returns an iterator over the values of seq. Closing the store waits for the end of the iteration. The
// values show the store at the beginning of the iteration or later. If ctx ends meanwhile, the last value is an
// error: see Whole.
func Reading[T any](ctx context.Context, eng *Engine, seq func(yield func(T, error) bool)) iter.Seq2[T, error] {
	return Whole(ctx, func(yield func(T, error) bool) {
		var none T
		if err := eng.BeginUse(); err != nil {
			yield(none, err)
			return
		}
		defer eng.EndUse()
		if err := eng.CatchUp(ctx); err != nil {
			yield(none, err)
			return
		}
		seq(yield)
	})
}

// Whole returns an iterator over the values of seq. If ctx ends meanwhile, the last value is the error of ctx,
// even if seq ignores ctx. So a loop that ends without an error has seen all values.
func Whole[T any](ctx context.Context, seq func(yield func(T, error) bool)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		more := true
		seq(func(v T, err error) bool {
			ended := ctx.Err()
			switch {
			case ended == nil:
				more = yield(v, err)
				return more
			case errors.Is(err, ended): // err says where
				yield(none, err)
			default:
				yield(none, ended)
			}
			more = false
			return false
		})
		if more && ctx.Err() != nil {
			yield(none, ctx.Err())
		}
	}
}

// Each yields the memories that pass the filters, with their content. If ctx ends meanwhile, the last value is an
// error: see Whole.
func (eng *Engine) Each(ctx context.Context, f Filters, yield func(memstore.Memory, error) bool) {
	Whole(ctx, func(yield func(memstore.Memory, error) bool) {
		for id, err := range eng.chosen(ctx, &f) {
			if err != nil {
				if !yield(memstore.Memory{}, err) {
					return
				}
				continue
			}
			v, err := eng.Load(ctx, eng.kinds.Memories, id)
			if errors.Is(err, errs.ErrNotFound) || err == nil && v.Stale(&f, id, eng.env.Clock()) {
				continue // deleted since
			}
			var m memstore.Memory
			if err == nil {
				m, err = eng.Decode(id, v)
			} else {
				err = fmt.Errorf("memory %s: %w", human.Quote(id), err)
			}
			if err == nil && (!f.Memory(&m) || f.Reads() && f.Sort.Skips()) {
				continue
			}
			if !yield(m, err) {
				return
			}
		}
	})(yield)
}

// Count returns the number of memories that pass the filters.
func (eng *Engine) Count(ctx context.Context, f Filters) (n int64, err error) {
	f.Sort = nil
	if err := eng.CatchUp(ctx); err != nil {
		return 0, err
	}
	switch {
	case f.All():
		return eng.countAll(ctx)
	case eng.tuning.Orders != nil && f.Session == nil && f.Prefix == "" && f.After == "":
		if n, ok, err := eng.tuning.Orders.Count(ctx, &f); ok || err != nil {
			return n, err
		}
	}
	if n, ok := eng.countSession(ctx, &f); ok {
		return n, nil
	}
	switch {
	case f.Reads():
		eng.Each(ctx, f, func(_ memstore.Memory, each error) bool {
			if each == nil {
				n++
			} else if err == nil {
				err = each
			}
			return ctx.Err() == nil
		})
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return n, err
	}
	for _, err := range eng.IDs(ctx, eng.kinds.Memories, f) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// countAll returns the number of all memories that have not expired.
func (eng *Engine) countAll(ctx context.Context) (int64, error) {
	for {
		swaps := eng.state.Swaps()
		live, expired, err := eng.expiring.Count(ctx, eng.env.Clock())
		if errors.Is(err, errs.ErrCorrupt) && eng.Healed(swaps) {
			continue
		}
		return live - expired, eng.DamageOf(err)
	}
}

// expiredMost is the maximum number of expired memories that countSession subtracts from the number of memories of a
// session.
const expiredMost = 1024

// countSession returns the number of memories of a session. It does not read the line of each memory, but the index
// section by_session, in which the ids of a session are adjacent. ok is false if the filters need the lines, if too
// many memories have expired (expiredMost), or if the index cannot be read.
func (eng *Engine) countSession(ctx context.Context, f *Filters) (n int64, ok bool) {
	if f.Session == nil || *f.Session == "" || f.Reads() || f.By != nil || f.Created != (Span{}) ||
		f.Updated != (Span{}) || f.After != "" {
		return 0, false
	}
	changed, err := eng.overlay.Sorted(ctx, eng, eng.kinds.Memories)
	set := eng.state.Set()
	if err != nil || set == nil {
		return 0, false
	}
	defer func() { _ = set.Release() }()
	now := eng.env.Clock()
	expired := map[string]bool{}
	if !f.Expired && set.Count(index.ByExpiry) > 0 {
		for e, err := range set.Range(index.ByExpiry, index.Span{}) {
			at, id, sound := index.SplitExpiryKey(string(e.Key))
			if err != nil || !sound || len(expired) == expiredMost {
				return 0, false
			}
			if now.Before(at) {
				break
			}
			expired[id] = true
		}
	}
	begin := len(index.SessionPrefix(*f.Session))
	for e, err := range set.Range(index.BySession, index.Span{Prefix: index.SessionKey(*f.Session, f.Prefix)}) {
		if err != nil || ctx.Err() != nil {
			return 0, false
		}
		id := string(e.Key[begin:])
		if len(changed) > 0 {
			key, err := table.EncodeKey(id)
			if err != nil {
				return 0, false
			}
			if Overtaken(changed, key) {
				continue
			}
		}
		if !expired[id] {
			n++
		}
	}
	for _, c := range prefixed(changed, f.Prefix) {
		if !c.Deleted && f.Line(c.id, &c.Line, now) {
			n++
		}
	}
	return n, true
}

// IDs yields the ids of the documents of a kind that pass the filters. It applies only the filters that the index can
// answer.
func (eng *Engine) IDs(ctx context.Context, k *Kind, f Filters) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for l, err := range eng.Lines(ctx, k, f) {
			if !yield(l.ID, err) {
				return
			}
		}
	}
}

// Listing is one document of a list, with the index line of the document.
type Listing struct {
	ID   string
	Line index.Entry
	// Line is from the overlay, not from the index files: the log still has the version, and Line has no modification
	// time of the file.
	InLog bool
}

// Lines yields the index lines of the documents of a kind that pass the filters. It applies only the filters that the
// index can answer. It merges the lines of the index files with the lines of the overlay.
func (eng *Engine) Lines(ctx context.Context, k *Kind, f Filters) iter.Seq2[Listing, error] {
	if f.Sort != nil {
		return eng.sortedLines(ctx, k, f)
	}
	return Whole(ctx, func(yield func(Listing, error) bool) {
		changed, err := eng.overlay.Sorted(ctx, eng, k)
		if err != nil {
			yield(Listing{}, err)
			return
		}
		after, err := table.EncodeKey(f.After)
		if err != nil {
			yield(Listing{}, &errs.FieldError{Field: "id", Value: human.Quote(f.After), Err: err})
			return
		}
		list := prefixed(changed, f.Prefix)
		if f.After != "" {
			i, found := find(list, after)
			if list = list[i:]; found {
				list = list[1:]
			}
		}
		now := eng.env.Clock()
		give := func(c *change) bool {
			return c.Deleted || !f.Line(c.id, &c.Line, now) || yield(Listing{c.id, c.Line, true}, nil)
		}
		for item, err := range eng.base(k, f) {
			if err != nil && item.Key != "" && Overtaken(changed, item.Key) {
				continue // its line in the index is outdated
			}
			if err != nil {
				if !yield(Listing{}, err) {
					return
				}
				continue
			}
			for len(list) > 0 && list[0].key < item.Key {
				if !give(list[0]) {
					return
				}
				list = list[1:]
			}
			if len(list) > 0 && list[0].key == item.Key {
				continue // it comes from the overlay
			}
			if Overtaken(changed, item.Key) {
				continue
			}
			if f.Line(item.ID, &item.Line, now) && !yield(Listing{item.ID, item.Line, false}, nil) {
				return
			}
		}
		for _, c := range list {
			if !give(c) {
				return
			}
		}
	})
}

// prefixed returns the changes whose ids begin with prefix, from a list sorted by key. If the prefix is not valid
// UTF-8, it returns the whole list.
func prefixed(list []*change, prefix string) []*change {
	key, err := table.EncodeKey(prefix)
	if err != nil || key == "" {
		return list
	}
	from, _ := find(list, key)
	list = list[from:]
	return list[:sort.Search(len(list), func(i int) bool { return !strings.HasPrefix(list[i].key, key) })]
}

// Item is a line that was read from the index files. Key is the id in the form by which the index is sorted.
type Item struct {
	ID, Key string
	Line    index.Entry
}

// base yields the lines of a kind from the index files. If one session is selected, it uses the section by_session. If
// the index is damaged and another goroutine or process has rebuilt it since, base continues with the rebuilt index
// after the last line that it yielded.
func (eng *Engine) base(k *Kind, f Filters) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for again := true; again; {
			again = false
			swaps, set := eng.state.Swaps(), eng.state.Set()
			if set == nil {
				yield(Item{}, errs.ErrClosed)
				return
			}
			for it, err := range lines(set, k, f) {
				if errors.Is(err, errs.ErrCorrupt) && eng.Healed(swaps) {
					again = true
					break
				}
				if err = eng.orReplaced(err); !yield(it, err) {
					break
				}
				if err == nil {
					f.After = it.ID
				}
			}
			_ = set.Release()
		}
	}
}

// lines yields the lines of kind k in the index files of set that have the prefix and the session of the filters and
// come after f.After. It applies no other filter.
func lines(set *index.Set, k *Kind, f Filters) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		section, span := k.Section, index.Span{Prefix: f.Prefix}
		if f.Session != nil {
			section, span.Prefix = index.BySession, index.SessionKey(*f.Session, f.Prefix)
		}
		if f.After != "" {
			span.From, span.After = f.After, true
			if f.Session != nil {
				span.From = index.SessionKey(*f.Session, f.After)
			}
		}
		var buf []byte
		for e, err := range set.Range(section, span) {
			if err != nil {
				if !yield(Item{}, err) {
					return
				}
				continue
			}
			it, line := Item{ID: string(e.Key)}, e.Value
			if f.Session != nil {
				var ok bool
				if _, it.ID, ok = index.SplitSessionKey(it.ID); !ok {
					err = fmt.Errorf("%w: the section by_session has the malformed key %s", errs.ErrCorrupt, human.Quote(it.ID))
				} else if buf, ok, err = set.Get(buf[:0], index.Memories, it.ID); err == nil && !ok {
					err = fmt.Errorf("%w: the section by_session names %s, which is not in the index",
						errs.ErrCorrupt, human.Quote(it.ID))
				}
				line = buf
			}
			if err == nil {
				it.Key, err = table.EncodeKey(it.ID)
			}
			if err == nil {
				if it.Line, err = index.ParseLine(line); err != nil {
					err = fmt.Errorf("%w: the index line of %s is invalid: %w", errs.ErrCorrupt, human.Quote(it.ID),
						err)
				}
			}
			if !yield(it, err) {
				return
			}
		}
	}
}
