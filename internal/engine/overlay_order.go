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

// change is the newest change of one document in the overlay, in the form that listings use.
type change struct {
	id, key string      // id, and key: the id as JSON encodes it
	Line    index.Entry // index line of the change; for a deletion it has only the version
	Deleted bool
}

// overlayOrder keeps the overlay's changes of each kind of document in the order of the index. A listing adds
// only the changes since the previous listing, so under steady writes each entry is read once. Lists in use do
// not change.
type overlayOrder struct {
	mu     sync.Mutex
	lists  map[*Kind][]*change
	from   wal.LSN // position below which the index has all changes
	next   wal.LSN // position below which the lists have all changes
	breaks uint64
}

// Sorted returns the changes of one kind of document since the index was written, in the order of the index.
func (o *overlayOrder) Sorted(ctx context.Context, eng *Engine, k *Kind) ([]*change, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var last error
	for range FindTries {
		swaps := eng.state.Swaps()
		last = o.catchUp(ctx, eng)
		if last == nil && swaps == eng.state.Swaps() {
			return o.lists[k], nil
		}
		if last != nil && !errors.Is(last, errs.ErrTruncated) && !errors.Is(last, ErrMoved) {
			return nil, last
		}
		_ = eng.Refresh()
	}
	return nil, fmt.Errorf("listing: other processes release the log faster than this process can read it: %w", last)
}

// catchUp adds the changes since its last call to the lists. If it fails, it adds no change.
func (o *overlayOrder) catchUp(ctx context.Context, eng *Engine) error {
	breaks := eng.state.Breaks()
	if o.lists == nil || breaks != o.breaks {
		o.lists, o.from, o.next, o.breaks = map[*Kind][]*change{}, 0, 0, breaks
	}
	_, changes, from := eng.state.Moment(o.next, false)
	if breaks != eng.state.Breaks() {
		return ErrMoved // they may be of another log
	}
	news, next, r := map[*Kind][]*change{}, o.next, eng.log.Reader()
	for _, at := range changes {
		e, err := r.At(ctx, at.Pos)
		if err != nil {
			return err
		}
		next = at.Pos + 1
		k := eng.kinds.Of(e.Key)
		if k == nil {
			continue
		}
		c := &change{id: strings.Clone(e.Key[1:]), Deleted: e.Delete}
		if c.key, err = table.EncodeKey(c.id); err == nil && !e.Delete {
			c.Line, err = LineOf(e)
		}
		if err != nil {
			return err
		}
		c.Line.Version = at.Pos
		news[k] = append(news[k], c)
	}
	for _, k := range eng.kinds.All {
		old := o.lists[k]
		if from != o.from {
			old = slices.DeleteFunc(slices.Clone(old), func(c *change) bool { return c.Line.Version < from })
		}
		o.lists[k] = mergeChanges(old, news[k])
	}
	o.from, o.next = from, next
	return nil
}

// mergeChanges merges two sorted lists. If both have a key, the change from new is kept.
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

// find returns the index of a key in a list, or the index at which it would be inserted.
func find(list []*change, key string) (i int, found bool) {
	return slices.BinarySearchFunc(list, key, func(c *change, k string) int { return strings.Compare(c.key, k) })
}

// Overtaken reports whether the overlay has a change of the key. If so, the line in the index files is out of date.
func Overtaken(list []*change, key string) bool {
	_, found := find(list, key)
	return found
}

// LineOf returns the index line that a log entry contains.
func LineOf(e wal.Entry) (index.Entry, error) {
	line, _, err := state.LineIn(&e)
	if err != nil {
		return line, fmt.Errorf("entry %d: %w", e.LSN, err)
	}
	return line, nil
}
