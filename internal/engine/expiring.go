package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/wal"
)

// expiring knows which of the memories that changed since the index was written have a
// time to live, and which had one there. It looks at each change once, so that counting
// costs what has expired and was not swept yet, however much there is. All that it says
// is of one moment.
type expiring struct {
	mu   sync.Mutex
	of   Tables               // of the index that it lies over
	at   wal.LSN              // below which all was looked at
	live int64                // memories, also expired ones
	list map[string]time.Time // of what changed: when it expires
	over map[string]bool      // what changed: by_expiry of the index has it, and is out of date
}

// AnyExpiry says whether any memory has a time to live. It may say yes where it is not so.
func (eng *Engine) AnyExpiry(ctx context.Context) bool {
	x := &eng.Expiring
	x.mu.Lock()
	defer x.mu.Unlock()
	set, err := x.catchUp(ctx, eng)
	if err != nil {
		return true
	}
	defer set.Release()
	return set.Count(index.ByExpiry) > int64(len(x.over)) || len(x.list) > 0
}

// Count is how many memories there are, and how many of them are over at now.
func (x *expiring) Count(ctx context.Context, eng *Engine, now time.Time) (live, expired int64, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	set, err := x.catchUp(ctx, eng)
	if err != nil {
		return 0, 0, err
	}
	defer set.Release()
	err = x.below(set, now, func(string) bool { expired++; return true })
	for _, t := range x.list {
		if !t.After(now) {
			expired++
		}
	}
	return x.live, expired, err
}

// Due are some of the memories that were over at a time, at most so many.
func (x *expiring) Due(ctx context.Context, eng *Engine, at time.Time, most int) (ids []string, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	set, err := x.catchUp(ctx, eng)
	if err != nil {
		return nil, err
	}
	defer set.Release()
	err = x.below(set, at, func(id string) bool {
		ids = append(ids, id)
		return len(ids) < most
	})
	for _, id := range slices.Sorted(maps.Keys(x.list)) {
		if !x.list[id].After(at) && len(ids) < most {
			ids = append(ids, id)
		}
	}
	return ids, err
}

// below names the memories that are over at a time and did not change since the index
// was written; mu is held.
func (x *expiring) below(set *index.Set, at time.Time, yield func(id string) bool) error {
	if set.Count(index.ByExpiry) == 0 {
		return nil
	}
	for e, err := range set.Range(index.ByExpiry, index.Span{}) {
		if err != nil {
			return err
		}
		t, id, ok := index.SplitExpiryKey(string(e.Key))
		if !ok {
			return fmt.Errorf("%w: by_expiry has the key %s", errs.ErrCorrupt, errs.Quote(string(e.Key)))
		}
		if t.After(at) {
			break
		}
		if !x.over[id] && !yield(id) {
			break
		}
	}
	return nil
}

// catchUp looks at what changed, and returns the index that all of it lies over.
func (x *expiring) catchUp(ctx context.Context, eng *Engine) (*index.Set, error) {
	var last error
	for range FindTries {
		set := eng.State.Set()
		if set == nil {
			return nil, errs.ErrClosed
		}
		err := x.look(ctx, eng, set)
		if err == nil {
			return set, nil
		}
		_ = set.Release()
		x.list = nil // half looked at
		if !errors.Is(err, errs.ErrTruncated) && !errors.Is(err, ErrMoved) {
			return nil, err
		}
		last = err
		_ = eng.Refresh()
	}
	return nil, fmt.Errorf("counting: the log is released faster than it can be read: %w", last)
}

func (x *expiring) look(ctx context.Context, eng *Engine, set *index.Set) error {
	if of := TablesOf(set); x.of != of || x.list == nil {
		x.of, x.at, x.list, x.over = of, set.LSN(), map[string]time.Time{}, map[string]bool{}
	}
	at := eng.Log.Applied()
	none := set.Count(index.ByExpiry) == 0 && len(x.list) == 0 // then changes matter only if they bring one
	live, changes, covered := eng.State.Moment(x.at, none)
	if covered != set.LSN() {
		return ErrMoved // the newer one took in some of them
	}
	r := eng.Log.Reader()
	var buf []byte
	for _, c := range changes {
		e, err := r.At(ctx, c.Pos)
		if err != nil {
			return err
		}
		if eng.Kinds.Of(e.Key) != eng.Kinds.Memories {
			continue
		}
		var line index.Entry
		if !e.Delete {
			if line, err = LineOf(e); err != nil {
				return err
			}
		}
		id := string([]byte(e.Key[1:])) // the key lies in the reader's buffer
		if line.ExpiresAt.IsZero() {
			delete(x.list, id)
		} else {
			x.list[id] = line.ExpiresAt
		}
		if set.Count(index.ByExpiry) == 0 || x.over[id] {
			continue
		}
		var ok bool
		if buf, ok, err = set.Get(buf[:0], index.Memories, id); err != nil {
			return err
		}
		if !ok {
			continue
		}
		if line, err = index.ParseLine(buf); err != nil {
			return fmt.Errorf("%w: index line of %s: %w", errs.ErrCorrupt, errs.Quote(id), err)
		}
		if !line.ExpiresAt.IsZero() {
			x.over[id] = true
		}
	}
	x.at, x.live = max(x.at, at), live
	return nil
}

// ClockGrace is for how long a clock that says that something is over is not believed: one
// that jumps, and is put right within it, costs nothing.
const ClockGrace = time.Hour
