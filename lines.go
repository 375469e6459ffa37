package varve

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/index/table"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/wal"
)

// reading is an operation that yields what there is as of its beginning or later.
func reading[T any](ctx context.Context, eng *engine, each func(yield func(T, error) bool)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		if err := eng.begun(); err != nil {
			yield(none, err)
			return
		}
		defer eng.ended()
		if err := eng.sight(ctx); err != nil {
			yield(none, err)
			return
		}
		each(yield)
	}
}

// each yields decoded memories.
func (eng *engine) each(ctx context.Context, f filters, yield func(memstore.Memory, error) bool) {
	for id, err := range eng.ids(ctx, eng.kinds.memories, f) {
		if err != nil {
			if !yield(memstore.Memory{}, err) {
				return
			}
			continue
		}
		v, err := eng.load(ctx, eng.kinds.memories, id)
		if errors.Is(err, errs.ErrNotFound) || err == nil && v.left(&f, id, eng.env.Clock()) {
			continue // gone since
		}
		var m memstore.Memory
		if err == nil {
			m, err = eng.decode(id, v)
		} else {
			err = fmt.Errorf("memory %s: %w", errs.Quote(id), err)
		}
		if err == nil && !f.memory(&m) {
			continue
		}
		if !yield(m, err) || ctx.Err() != nil {
			return
		}
	}
}

// countAll is Count without a filter: what there is, without what is over.
func (eng *engine) countAll(ctx context.Context) (int64, error) {
	for {
		swaps := eng.state.Swaps()
		live, expired, err := eng.expiring.count(ctx, eng, eng.env.Clock())
		if errors.Is(err, errs.ErrCorrupt) && eng.healed(swaps) {
			continue
		}
		eng.rot(err)
		return live - expired, err
	}
}

// change is what the overlay knows of one document, for listings.
type change struct {
	id, key string // key as JSON writes it
	line    index.Entry
	deleted bool
}

// overlayOrder keeps what the overlay has of each kind in the order of the table,
// made when a listing needs it and as long as nothing changes.
type overlayOrder struct {
	mu    sync.Mutex
	lists map[*kind]*changes
	at    wal.LSN
	swaps uint64
}

type changes struct{ list []change }

func (o *overlayOrder) sorted(ctx context.Context, eng *engine, k *kind) (*changes, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var last error
	for range findTries {
		swaps, at := eng.state.Swaps(), eng.log.Applied()
		if o.lists != nil && o.at == at && o.swaps == swaps {
			return o.lists[k], nil
		}
		lists, err := eng.sortChanges(ctx)
		if err == nil && swaps == eng.state.Swaps() {
			o.lists, o.at, o.swaps = lists, at, swaps
			return lists[k], nil
		}
		if err != nil && !errors.Is(err, errs.ErrTruncated) && !errors.Is(err, errMoved) {
			return nil, err
		}
		last = err
		_ = eng.refresh()
	}
	return nil, fmt.Errorf("listing: the log is released faster than it can be read: %w", last)
}

func (eng *engine) sortChanges(ctx context.Context) (map[*kind]*changes, error) {
	lists := map[*kind]*changes{}
	for _, k := range eng.kinds.all {
		lists[k] = new(changes)
	}
	for _, at := range eng.state.Changes(0, 1<<62) {
		e, err := eng.log.ReadAt(ctx, at.Pos)
		if err != nil {
			return nil, err
		}
		all := lists[eng.kinds.kindOf(e.Key)]
		if all == nil {
			continue
		}
		c := change{id: e.Key[1:], deleted: e.Delete}
		if c.key, err = table.EncodeKey(c.id); err != nil {
			return nil, err
		}
		if !e.Delete {
			if c.line, err = lineOf(e); err != nil {
				return nil, err
			}
			c.line.Version = at.Pos
		}
		all.list = append(all.list, c)
	}
	for _, all := range lists {
		slices.SortFunc(all.list, func(a, b change) int { return strings.Compare(a.key, b.key) })
	}
	return lists, nil
}

// ids yields the ids that pass the filters, as far as the index knows.
func (eng *engine) ids(ctx context.Context, k *kind, f filters) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for l, err := range eng.lines(ctx, k, f) {
			if !yield(l.id, err) {
				return
			}
		}
	}
}

// listing is what the index knows of one document.
type listing struct {
	id    string
	line  index.Entry
	inLog bool // it comes from the overlay: the version is its place in the log, the line has no mtime
}

// lines yields what the index knows of the documents that pass the filters: the
// set and the overlay, merged.
func (eng *engine) lines(ctx context.Context, k *kind, f filters) iter.Seq2[listing, error] {
	return func(yield func(listing, error) bool) {
		changed, err := eng.overlay.sorted(ctx, eng, k)
		if err != nil {
			yield(listing{}, err)
			return
		}
		after, err := table.EncodeKey(f.after)
		if err != nil {
			yield(listing{}, &errs.FieldError{Field: "id", Value: errs.Quote(f.after), Err: err})
			return
		}
		list := changed.list
		for len(list) > 0 && f.after != "" && list[0].key <= after {
			list = list[1:]
		}
		now := eng.env.Clock()
		give := func(c *change) bool {
			return c.deleted || !f.line(c.id, &c.line, now) || yield(listing{c.id, c.line, true}, nil)
		}
		for item, err := range eng.base(k, f) {
			if err != nil && item.key != "" && overtaken(changed.list, item.key) {
				continue // what its line says is of no interest
			}
			if err != nil {
				if !yield(listing{}, err) {
					return
				}
				continue
			}
			for len(list) > 0 && list[0].key < item.key {
				if !give(&list[0]) {
					return
				}
				list = list[1:]
			}
			if len(list) > 0 && list[0].key == item.key {
				continue // it comes from the overlay
			}
			if overtaken(changed.list, item.key) {
				continue
			}
			if f.line(item.id, &item.line, now) && !yield(listing{item.id, item.line, false}, nil) {
				return
			}
		}
		for i := range list {
			if !give(&list[i]) {
				return
			}
		}
	}
}

// overtaken says whether the overlay knows the key.
func overtaken(list []change, key string) bool {
	_, ok := slices.BinarySearchFunc(list, key, func(c change, k string) int { return strings.Compare(c.key, k) })
	return ok
}

// item is a line of the set.
type item struct {
	id, key string
	line    index.Entry
}

// base yields the lines of the index, those of one session by by_session. Where
// it is damaged and somebody has healed it since, the healed one goes on behind
// the last line.
func (eng *engine) base(k *kind, f filters) iter.Seq2[item, error] {
	return func(yield func(item, error) bool) {
		for again := true; again; {
			again = false
			swaps, set := eng.state.Swaps(), eng.state.Set()
			if set == nil {
				yield(item{}, errs.ErrClosed)
				return
			}
			for it, err := range lines(set, k, f) {
				if errors.Is(err, errs.ErrCorrupt) && eng.healed(swaps) {
					again = true
					break
				}
				if !yield(it, err) {
					break
				}
				if err == nil {
					f.after = it.id
				}
			}
			_ = set.Release()
		}
	}
}

// lines yields the lines of a set.
func lines(set *index.Set, k *kind, f filters) iter.Seq2[item, error] {
	return func(yield func(item, error) bool) {
		section, span := k.Section, index.Span{Prefix: f.prefix}
		if f.session != nil {
			section, span.Prefix = index.BySession, index.SessionKey(*f.session, f.prefix)
		}
		if f.after != "" {
			span.From, span.After = f.after, true
			if f.session != nil {
				span.From = index.SessionKey(*f.session, f.after)
			}
		}
		var buf []byte
		for e, err := range set.Range(section, span) {
			if err != nil {
				if !yield(item{}, err) {
					return
				}
				continue
			}
			it, line := item{id: string(e.Key)}, e.Value
			if f.session != nil {
				var ok bool
				if _, it.id, ok = index.SplitSessionKey(it.id); !ok {
					err = fmt.Errorf("%w: by_session has the key %s", errs.ErrCorrupt, errs.Quote(it.id))
				} else if buf, ok, err = set.Get(buf[:0], index.Memories, it.id); err == nil && !ok {
					err = fmt.Errorf("%w: by_session names %s, which is not in the index", errs.ErrCorrupt, errs.Quote(it.id))
				}
				line = buf
			}
			if err == nil {
				it.key, err = table.EncodeKey(it.id)
			}
			if err == nil {
				if it.line, err = index.ParseLine(line); err != nil {
					err = fmt.Errorf("%w: index line of %s: %w", errs.ErrCorrupt, errs.Quote(it.id), err)
				}
			}
			if !yield(it, err) {
				return
			}
		}
	}
}

// lineOf is the line of the index that an entry carries.
func lineOf(e wal.Entry) (index.Entry, error) {
	line, _, err := state.LineIn(&e)
	if err != nil {
		return line, fmt.Errorf("entry %d: %w", e.LSN, err)
	}
	return line, nil
}
