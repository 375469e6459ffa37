package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/index/table"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
)

// change is what the overlay knows of one document, for listings.
type change struct {
	id, key string // key as JSON writes it
	Line    index.Entry
	Deleted bool
	at      wal.LSN
}

// overlayOrder keeps what the overlay has of each kind in the order of the table. A listing takes in
// what has changed since the one before, so that under steady writes each entry is read and sorted
// once, and not by each listing. Its lists are never changed: readers have them.
type overlayOrder struct {
	mu     sync.Mutex
	lists  map[*Kind][]*change
	from   wal.LSN // the index has what is below
	next   wal.LSN // the lists have what is below
	breaks uint64
}

// Sorted lists what changed of a kind since the index was written, as the index sorts it.
func (o *overlayOrder) Sorted(ctx context.Context, eng *Engine, k *Kind) ([]*change, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var last error
	for range FindTries {
		swaps := eng.State.Swaps()
		err := o.catchUp(ctx, eng)
		if err == nil && swaps == eng.State.Swaps() {
			return o.lists[k], nil
		}
		if err != nil && !errors.Is(err, errs.ErrTruncated) && !errors.Is(err, ErrMoved) {
			return nil, err
		}
		last = err
		_ = eng.Refresh()
	}
	return nil, fmt.Errorf("listing: the log is released faster than it can be read: %w", last)
}

// catchUp takes in what has changed. What fails half way changes nothing.
func (o *overlayOrder) catchUp(ctx context.Context, eng *Engine) error {
	breaks := eng.State.Breaks()
	if o.lists == nil || breaks != o.breaks {
		o.lists, o.from, o.next, o.breaks = map[*Kind][]*change{}, 0, 0, breaks
	}
	_, changes, from := eng.State.Moment(o.next, false)
	if breaks != eng.State.Breaks() {
		return ErrMoved // they may be of another log
	}
	news, next, r := map[*Kind][]*change{}, o.next, eng.Log.Reader()
	for _, at := range changes {
		e, err := r.At(ctx, at.Pos)
		if err != nil {
			return err
		}
		next = at.Pos + 1
		k := eng.Kinds.Of(e.Key)
		if k == nil {
			continue
		}
		c := &change{id: strings.Clone(e.Key[1:]), Deleted: e.Delete, at: at.Pos}
		if c.key, err = table.EncodeKey(c.id); err != nil {
			return err
		}
		if !e.Delete {
			if c.Line, err = LineOf(e); err != nil {
				return err
			}
			c.Line.Version = at.Pos
		}
		news[k] = append(news[k], c)
	}
	for _, k := range eng.Kinds.All {
		old, new := o.lists[k], news[k]
		if from != o.from {
			old = slices.DeleteFunc(slices.Clone(old), func(c *change) bool { return c.at < from })
		}
		o.lists[k] = mergeChanges(old, new)
	}
	o.from, o.next = from, next
	return nil
}

// mergeChanges is what is there of both. Of one key the newer one counts.
func mergeChanges(old, new []*change) []*change {
	if len(new) == 0 {
		return old
	}
	slices.SortFunc(new, func(a, b *change) int { return strings.Compare(a.key, b.key) })
	list := make([]*change, 0, len(old)+len(new))
	for _, c := range new {
		i, found := find(old, c.key)
		list = append(append(list, old[:i]...), c)
		if found {
			i++
		}
		old = old[i:]
	}
	return append(list, old...)
}

// find is where a key is in a list, or would be.
func find(list []*change, key string) (i int, found bool) {
	return slices.BinarySearchFunc(list, key, func(c *change, k string) int { return strings.Compare(c.key, k) })
}

// Overtaken says whether the overlay knows the key.
func Overtaken(list []*change, key string) bool {
	_, found := find(list, key)
	return found
}

// LineOf is the line of the index that an entry carries.
func LineOf(e wal.Entry) (index.Entry, error) {
	line, _, err := state.LineIn(&e)
	if err != nil {
		return line, fmt.Errorf("entry %d: %w", e.LSN, err)
	}
	return line, nil
}
